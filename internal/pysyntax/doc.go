// Package pysyntax reads the source of Python programs, 3.8 to 3.14, as a tree of statements and expressions, without Python.
//
// It is for tools that look for patterns in programs, not for a compiler: what Python's parser refuses only for its meaning
// (a return outside of a function, an assignment to a call) may pass. What it does not understand is an [Error] with its line;
// nothing is guessed.
//
// The grammar is that of "The Python Language Reference", chapters 2, 6, 7 and 8, and of PEP 263 (encodings), 498 and 701
// (f-strings), 572, 634, 646, 654, 695, 696, 750 and 758.
package pysyntax
