// Package tables is for tables of text that a package embeds: a build with the tag packed has them compressed, by half a megabyte
// in all.
//
// Such a table has two files beside it: one embeds TABLE, without the tag, and one TABLE.gz, with it. The compressed ones are made
// by go run ./gen -pack in internal/cuda/kernels, and nobody commits them.
package tables

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
)

// Packed are the tables that a release has compressed, from the root of the module.
func Packed() []string {
	return []string{"internal/counts/kernels.json", "internal/ledger/answers.txt", "internal/ptx/forms.txt", "internal/torchcall/table.json"}
}

// Pack compresses a table.
func Pack(text []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(withoutRepeats(text))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // memory takes what is written
	}
	return b.Bytes()
}

// Unpack is a table that was compressed. It panics if it was not: that is a mistake of the build.
func Unpack(packed string) string {
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(z)
	if err == nil {
		text, err = withRepeats(text)
	}
	if err != nil {
		panic(err)
	}
	return string(text)
}
