package simrun

import (
	"fmt"
	"strings"
	"testing"
)

// pairs is a kernel of a thread's stores and other threads' loads, unrolled, with nothing between; lines of the source are
// given by the .loc before each if located.
func pairs(n int, located bool) string {
	var b strings.Builder
	b.WriteString(".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n.reqntid 32\n{\n.shared .align 4 .b8 s[128];\n" +
		".reg .b64 %o; .reg .b32 %t, %a, %b, %v;\nld.param.u64 %o, [out];\nmov.u32 %t, %tid.x; shl.b32 %t, %t, 2; mov.u32 %a, s; add.u32 %a, %a, %t; xor.b32 %b, %a, 4;\n")
	loc := func(line int) {
		if located {
			fmt.Fprintf(&b, ".loc 1 %d 0\n", line)
		}
	}
	for range n {
		loc(7)
		b.WriteString("st.shared.u32 [%a], %t;\n")
		loc(8)
		b.WriteString("ld.shared.u32 %v, [%b];\nadd.u32 %t, %t, 1;\n")
	}
	return b.String() + "ret;\n}\n.file 1 \"k.cu\"\n"
}

// TestGroups: findings that differ in their lines of PTX only are one for people, and all of them for programs.
func TestGroups(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, located := range []bool{true, false} {
		write(t, "k.ptx", pairs(4, located))
		r, err := Run(t.Context(), Config{File: "k.ptx", Args: []string{"u32[1]"}, Shared: -1})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Text(100)
		if r.Found != 7 || len(r.Findings) != 7 {
			t.Errorf("located %v: %d findings\n%s", located, r.Found, text)
		}
		blocks, last := strings.Count(text, "racecheck: "), "\n7 findings\n"
		if located {
			last = "\n2 findings\n"
			if !strings.Contains(text, "and 3 more pairs of PTX lines") || !strings.Contains(text, "and 2 more pairs of PTX lines") || !strings.Contains(text, "(128 times)") {
				t.Error(text)
			}
		}
		if want := map[bool]int{true: 2, false: 7}[located]; blocks != want || !strings.HasSuffix(text, last) {
			t.Errorf("located %v: %d blocks\n%s", located, blocks, text)
		}
	}
}

// TestNotes: a report that leaves something out says so.
func TestNotes(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "k.ptx", pairs(100, false))
	r, err := Run(t.Context(), Config{File: "k.ptx", Args: []string{"u32[1]"}, Shared: -1})
	if err != nil || !strings.Contains(r.Text(100), "note: there are more kinds of findings than a report lists") {
		t.Error(r, err)
	}
}
