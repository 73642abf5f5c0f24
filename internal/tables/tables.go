// Package tables is for tables of text that a package embeds: a build with the tag packed has them compressed, by 0.6 MB in
// all.
//
// Such a table has two files beside it: one embeds TABLE, without the tag, and one TABLE.lzma, with it. The compressed ones are made
// by go run ./gen -pack in internal/cuda/kernels, and nobody commits them.
package tables

import "github.com/warpline-ml/warpline/internal/lzma"

// Packed are the tables that a release has compressed, from the root of the module.
func Packed() []string {
	return []string{"internal/counts/kernels.json", "internal/ledger/answers.txt", "internal/ptx/forms.txt", "internal/torchcall/table.json"}
}

// Pack compresses a text, which takes two seconds a megabyte.
func Pack(text []byte) []byte { return lzma.Encode(text) }

// Unpack is a text that was packed. It panics if it was not: that is a mistake of the build.
func Unpack(packed string) string {
	text, err := lzma.Decode([]byte(packed))
	if err != nil {
		panic(err)
	}
	return string(text)
}
