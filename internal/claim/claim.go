// Package claim judges what a file says of itself, its shapes and sizes, before anything is allocated for it. It imports
// only the standard library.
package claim

import (
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"
)

// Bytes returns the bytes of an array with elements of the given size. The product of the dimensions other than 0 must
// fit too: strides are made of it.
func Bytes(element int, shape []int) (int, error) {
	size, empty := uint64(element), false
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("shape %s has a negative dimension", Shape(shape))
		case d == 0:
			empty = true
			continue
		}
		hi, lo := bits.Mul64(size, uint64(d))
		if hi != 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("shape %s of %d-byte elements takes more bytes than can be counted", Shape(shape), element)
		}
		size = lo
	}
	if empty {
		return 0, nil
	}
	return int(size), nil
}

// Inflates tells whether that many bytes of deflated data can hold size bytes. Deflate expands up to 1032 times, and its
// last block needs some room: what claims more is a lie found before anything is allocated.
func Inflates(packed, size uint64) bool {
	const ratio, slack = 1032, 1 << 10
	return size <= slack || (size-slack)/ratio <= packed
}

// Quote makes a string of a file fit for one line of an error.
func Quote(s string) string {
	const most = 80
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", s[:cut])
}

// Shape formats a shape of a file for one line of an error.
func Shape(shape []int) string {
	const most = 12
	if len(shape) <= most {
		return fmt.Sprint(shape)
	}
	return fmt.Sprintf("%v… (%d dimensions)", shape[:most], len(shape))
}
