"""What each panel shows, as pure functions of a scene and a size; none knows Textual."""
