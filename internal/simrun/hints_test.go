package simrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// strides is a kernel of one warp a block that writes and reads shared memory, and copies a row of 4 KiB of global memory, by lanes so many
// bytes apart.
const strides = `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
.reg .b64 %%rd<9>; .reg .b32 %%r<9>; .reg .pred %%p;
.shared .align 16 .b8 s[8192];
ld.param.u64 %%rd1, [x]; ld.param.u64 %%rd2, [y];
mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x; mul.wide.u32 %%rd3, %%r2, 4096; add.s64 %%rd1, %%rd1, %%rd3; add.s64 %%rd2, %%rd2, %%rd3;
mul.wide.u32 %%rd4, %%r1, %[1]d; add.s64 %%rd5, %%rd1, %%rd4; mul.lo.u32 %%r3, %%r1, %[2]d; mov.u32 %%r4, s; add.u32 %%r4, %%r4, %%r3;
ld.global.u32 %%r5, [%%rd5];
st.shared.u32 [%%r4], %%r5;
bar.warp.sync -1;
ld.shared.u32 %%r6, [%%r4];
mul.wide.u32 %%rd6, %%r1, 4; add.s64 %%rd2, %%rd2, %%rd6;
st.global.u32 [%%rd2], %%r6;
ret;
}
`

// TestAdvisedLines plants bank conflicts and uncoalesced accesses, and has the same without.
func TestAdvisedLines(t *testing.T) {
	for _, c := range []struct {
		name           string
		global, shared int // bytes between lanes
		want           []string
	}{
		{"neighbours", 4, 4, nil},
		{"a column of global memory", 128, 4, []string{"uncoalesced 11: 32.00 sectors of global memory a request, where 4.00"}},
		{"every other word of global memory", 8, 4, []string{"uncoalesced 11: 8.00 sectors of global memory a request, where 4.00"}},
		{"one word of global memory for all", 0, 4, nil},
		{"a column of shared memory", 4, 128, []string{"bank conflicts 12: 32.00 passes over the banks of shared memory a request, where 1.00", "bank conflicts 14: 32.00"}},
		{"a column of shared memory with a word between rows", 4, 132, nil},
		{"every other word of shared memory", 4, 8, []string{"bank conflicts 12: 2.00", "bank conflicts 14: 2.00"}},
		{"one word of shared memory for each four lanes", 4, 20, nil},
		{"both", 128, 128, []string{"bank conflicts 12", "bank conflicts 14", "uncoalesced 11"}},
	} {
		file := filepath.Join(t.TempDir(), "k.ptx")
		if err := os.WriteFile(file, fmt.Appendf(nil, strides, c.global, c.shared), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), Config{File: file, Grid: "3000", Block: "32", Sample: 9, Args: []string{"i32[3000,1024]=1", "i32[3000,1024]"}})
		if err != nil || r.Found > 0 {
			t.Fatal(err, r)
		}
		text := r.Text(200)
		if got := strings.Count(text, "\nadvice, "); got != len(c.want) || len(r.Advice) != len(c.want) {
			t.Errorf("%s: %+v, want %q\n%s", c.name, r.Advice, c.want, text)
			continue
		}
		found := ""
		for i, h := range r.Advice {
			found += fmt.Sprintf("%s %d: %s\n", h.Kind, h.Line, h.Message)
			if h.Gain < 0 || h.Gain > r.Model.Seconds || h.gain == "" || i > 0 && h.Gain > r.Advice[i-1].Gain {
				t.Errorf("%s: gain %g of %g, %q", c.name, h.Gain, r.Model.Seconds, h.gain)
			}
		}
		for _, w := range c.want {
			if !strings.Contains(found, w) {
				t.Errorf("%s: %q lacks %q", c.name, found, w)
			}
		}
		if c.global == 128 && r.Advice[0].Gain+r.Advice[len(r.Advice)-1].Gain < 0.1*r.Model.Seconds {
			t.Errorf("%s: no gain in %+v", c.name, r.Advice)
		}
	}
}

// TestAdviceOfSynccheck: what synccheck allows and CUDA's guide does not is told, and is no finding.
func TestAdviceOfSynccheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.ptx")
	src := fmt.Sprintf(strings.Replace(strides, "bar.warp.sync -1;", "setp.ge.u32 %%p, %%r1, 16; @%%p exit; bar.warp.sync -1;", 1), 4, 4)
	if err := os.WriteFile(file, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Config{File: file, Grid: "3", Block: "32", Args: []string{"i32[3,1024]=1", "i32[3,1024]"}})
	if err != nil || r.Found > 0 || len(r.Advice) != 1 || r.Advice[0].Count != 3 || !strings.Contains(r.Text(200), "advice, synccheck: the mask names lanes that have returned: 16 to 31") {
		t.Errorf("%v %+v", err, r)
	}
}
