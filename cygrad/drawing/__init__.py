"""Pictures and pages: SVG and HTML without other programs, and a picture by matplotlib, drawn from plain data."""
