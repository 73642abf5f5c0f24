package exercise

import (
	"fmt"
	"math"
)

// unwritten are the bits of memory of the simulated GPU that nobody has written.
const unwritten = 0xa5a5a5a5

// compare says how the numbers of a kernel differ from those that are wanted, and what that tells of the cause: elements that no
// thread has written, the right ones in other places, wrong ones at an edge or from somewhere on. Of equal ones nothing is told.
func compare(got, want []float32, formula string) (trouble, hint string) {
	var wrong, missing []int
	for i, w := range want {
		switch {
		case math.Float32bits(got[i]) == unwritten:
			missing = append(missing, i)
		case !(math.Abs(float64(got[i]-w)) <= 1e-4*max(1, math.Abs(float64(w)))):
			wrong = append(wrong, i)
		}
	}
	switch {
	case len(missing) == len(want):
		return "out is never written", "no thread stores a result: " + formula
	case len(missing) > 0:
		return places(missing) + " never written", fmt.Sprintf("follow the thread that should write out[%d]: does it get there, and with that index? %s", missing[0], formula)
	case len(wrong) == 0:
		return "", ""
	}
	first := wrong[0]
	trouble = fmt.Sprintf("out[%d] is %v, and should be %v", first, got[first], want[first])
	if len(wrong) > 1 {
		trouble += fmt.Sprintf("; %d of %d are wrong", len(wrong), len(want))
	}
	switch {
	case same(got, want):
		hint = "all the right numbers are there, in the wrong places: work out for one thread which element it reads and which it writes"
	case 8*len(wrong) <= len(want):
		hint = places(wrong) + " wrong and all others right: what is special about the threads there"
	case 8*first >= len(want) && 10*len(wrong) >= 8*(len(want)-first):
		hint = fmt.Sprintf("up to out[%d] all are right: what leads there has to go on", first-1)
	default:
		hint = fmt.Sprintf("compute out[%d] by hand, and compare it with what the kernel does", first)
	}
	return trouble, hint + ": " + formula
}

// same reports whether two results have the same numbers in some order.
func same(a, b []float32) bool {
	count := map[uint32]int{}
	for i := range a {
		count[math.Float32bits(a[i])]++
		count[math.Float32bits(b[i])]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// places names elements of the output, with a verb.
func places(list []int) string {
	first, last := list[0], list[len(list)-1]
	switch {
	case len(list) == 1:
		return fmt.Sprintf("out[%d] is", first)
	case last-first == len(list)-1:
		return fmt.Sprintf("out[%d] to out[%d] are", first, last)
	}
	return fmt.Sprintf("%d elements from out[%d] to out[%d] are", len(list), first, last)
}
