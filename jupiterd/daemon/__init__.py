"""The asyncio shells of jupiterd and the place where everything is put together."""
