// Package digits draws handwritten-like digits: an image classification set
// that needs no download and no storage.
//
// A sample is a pure function of a seed and an index, computed when it is
// asked for (under 20 µs on one core), so loader workers make the set while
// the model trains on it. The pictures follow the conventions of MNIST: 28×28
// pixels, white ink on black, the digit fitted into a box of about 20×20 pixels
// and centred by its mass.
//
// A picture starts from a table of the ways people write a digit (glyph.go),
// as strokes through a few knots. The knots are jittered and joined by splines
// (strokes.go), the path is warped, slanted, turned and fitted (draw.go), and
// a pen of varying width inks it (draw_ink.go). Every step is plain arithmetic that
// rounds alike on all platforms, so a seed names the same pictures everywhere.
package digits
