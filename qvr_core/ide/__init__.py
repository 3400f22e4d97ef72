"""One pure function per editor question, on an analysed text and a cursor.  Knows no editor and no protocol."""
