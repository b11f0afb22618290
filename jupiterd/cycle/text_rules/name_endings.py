"""Which endings of a file's name stand for which markup, programming language and kind.

Owns the tables alone; `document_kind` says what follows of them.
"""

from types import MappingProxyType
from typing import Final

ENDINGS_OF_MARKUP: Final = {
    "markdown": "md markdown mdown mkd mkdn mdx qmd rmd",
    "rst": "rst rest",
    "asciidoc": "adoc asciidoc asc",
    "wiki": "wiki mediawiki",
}
ENDINGS_OF_CODE: Final = {
    "ada": "adb ads",
    "assembly": "asm s",
    "awk": "awk",
    "bash": "sh bash zsh ksh",
    "c": "c h",
    "c#": "cs",
    "c++": "cc cpp cxx hh hpp hxx ino ipp tpp",
    "clojure": "clj cljc cljs",
    "cmake": "cmake",
    "css": "css less sass scss",
    "cuda": "cu cuh",
    "d": "d",
    "dart": "dart",
    "elisp": "el",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "f#": "fs fsi fsx",
    "fortran": "f f03 f08 f77 f90 f95 for",
    "glsl": "comp frag glsl vert",
    "go": "go",
    "groovy": "gradle groovy",
    "haskell": "hs lhs",
    "java": "java",
    "javascript": "cjs js jsx mjs",
    "julia": "jl",
    "kotlin": "kt kts",
    "lisp": "cl lisp lsp",
    "lua": "lua",
    "make": "mak mk",
    "nim": "nim",
    "nix": "nix",
    "objective-c": "mm",
    "ocaml": "ml mli",
    "pascal": "pas pp",
    "perl": "pl pm",
    "php": "php",
    "powershell": "ps1 psm1",
    "prolog": "pro",
    "proto": "proto",
    "python": "py pyi pyw pyx",
    "r": "r",
    "racket": "rkt",
    "ruby": "rb",
    "rust": "rs",
    "scala": "sc scala",
    "scheme": "scm ss",
    "solidity": "sol",
    "sql": "sql",
    "svelte": "svelte",
    "swift": "swift",
    "tcl": "tcl",
    "terraform": "tf",
    "typescript": "cts mts ts tsx",
    "verilog": "sv v vh",
    "vhdl": "vhd vhdl",
    "vim": "vim",
    "vue": "vue",
    "zig": "zig",
}

ENDINGS_OF_KIND: Final = {
    "web": "htm html shtml xht xhtml",
    "notebook": "ipynb",
    "office": "doc docx epub fodt odp ods odt pdf ppt pptx rtf tex",
    "table": "csv ods parquet tab tsv xls xlsx",
    "data": (
        "cfg cnf conf desktop geojson ini json json5 lock map plist po pot properties svg toml xml "
        "xsd xsl xslt yaml yml"
    ),
    "prose": "log text",
}
CODE_NAMES: Final = MappingProxyType(
    {
        "dockerfile": "docker",
        "containerfile": "docker",
        "makefile": "make",
        "gnumakefile": "make",
        "cmakelists.txt": "cmake",
        "rakefile": "ruby",
        "gemfile": "ruby",
    }
)
INTERPRETERS: Final = MappingProxyType(
    {"node": "javascript", "sh": "bash", "dash": "bash", "zsh": "bash", "rscript": "r"}
)
"""Program of a first line `#!` -> its language, where that has another name."""
