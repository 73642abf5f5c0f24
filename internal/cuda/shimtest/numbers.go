package shimtest

import (
	"regexp"
	"strconv"
)

// line is a number of testdata/numbers.h, or the size or offset of a structure.
var line = regexp.MustCompile(`(?m)^(?:NUMBER\((\w+)|SIZE_OF\((\w+)|OFFSET_OF\((\w+), (\w+)), (\d+)\)$`)

// Numbers are those of cuda.h, by their names there; sizes of structures by "sizeof CUx", offsets by "CUx.field". They
// are written down in the library's source, which no Go constant reaches.
func Numbers() map[string]int64 {
	all := map[string]int64{}
	for _, m := range line.FindAllSubmatch(numbers, -1) {
		v, _ := strconv.ParseInt(string(m[5]), 10, 64) // digits
		switch {
		case len(m[1]) > 0:
			all[string(m[1])] = v
		case len(m[2]) > 0:
			all["sizeof "+string(m[2])] = v
		default:
			all[string(m[3])+"."+string(m[4])] = v
		}
	}
	return all
}
