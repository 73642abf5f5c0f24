// Package safetensors reads and writes the safetensors format of Hugging Face:
// eight bytes of header length (little-endian), a JSON header, the tensors' bytes.
//
// [Parse] works on the bytes of a file, usually mapped, and hands out views of
// them. It accepts what the reference implementation
// (https://github.com/huggingface/safetensors) writes and refuses everything
// that could make two readers disagree: duplicate keys, holes, overlaps,
// trailing bytes. It allocates in proportion to the header, whatever that says.
//
// [Write] gives, byte for byte, what the reference implementation gives for the
// same tensors and at most one metadata entry (of several, its order is random;
// here they are sorted).
package safetensors

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/claim"
)

const (
	lengthSize   = 8           // bytes before the header
	maxHeader    = 100_000_000 // bytes, the limit of the reference implementation
	alignment    = 8           // of the data in written files
	metadataName = "__metadata__"
)

// dtypes in the order of the reference implementation, which writes tensors of
// later ones first so that all are aligned. The position is the sort key.
var dtypes = []struct {
	name string
	size int // bytes
}{
	{"BOOL", 1}, {"U8", 1}, {"I8", 1},
	{"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1},
	{"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
	{"I32", 4}, {"U32", 4}, {"F32", 4},
	{"F64", 8}, {"I64", 8}, {"U64", 8},
}

// rank returns the position of a dtype in dtypes, or −1.
func rank(dtype string) int {
	for i, d := range dtypes {
		if d.name == dtype {
			return i
		}
	}
	return -1
}

// byteSize returns the bytes of a tensor.
func byteSize(dtype string, shape []int) (int, error) {
	r := rank(dtype)
	if r < 0 {
		return 0, fmt.Errorf("dtype %s is not one of BOOL, U8 to U64, I8 to I64, F8_*, F16, BF16, F32, F64", claim.Quote(dtype))
	}
	return claim.Bytes(dtypes[r].size, shape)
}
