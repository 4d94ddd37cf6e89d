"""The version of this build, from the newest tag, and its compiler. CMake writes the module."""

version: str
compiler: str
