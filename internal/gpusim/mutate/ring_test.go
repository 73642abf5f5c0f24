package mutate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// ring goes through two stages by their addresses: the place is compared with the last stage, or the place after it with
// the end.
const ring = `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x) {
	.reg .b64 %%a; .reg .b32 %%s, %%t, %%i; .reg .pred %%p, %%q;
	.shared .align 16 .b8 tile[2048];
	ld.param.u64 %%a, [x];
	mov.b32 %%s, tile;
	mov.b32 %%i, 0;
L:
	cp.async.cg.shared.global [%%s], [%%a], 16;
	add.s32 %%t, %%s, 1024;
	setp.eq.s32 %%p, %s, %d;
	selp.b32 %%s, 4096, %%t, %%p;
	add.s32 %%i, %%i, 1;
	setp.lt.s32 %%q, %%i, 9;
	@%%q bra L;
	ret;
}`

func TestRing(t *testing.T) {
	for _, source := range []string{fmt.Sprintf(ring, "%s", 1024), fmt.Sprintf(ring, "%t", 2048)} {
		m, err := ptx.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		before := ptx.Print(m)
		var changed []string
		for _, mu := range mutants(m.Func("k")) {
			if mu.Kind != Stage {
				continue
			}
			mu.set(true)
			for line := range strings.Lines(ptx.Print(m)) {
				if strings.Contains(line, "selp") {
					changed = append(changed, strings.TrimSpace(line))
				}
			}
			mu.set(false)
		}
		if got := strings.Join(changed, " "); got != "selp.b32 %s, %t, %t, %p; selp.b32 %s, 4096, 4096, %p;" {
			t.Errorf("stages: %s", got)
		}
		if ptx.Print(m) != before {
			t.Error("a mutant is left")
		}
	}
	m, err := ptx.Parse(fmt.Sprintf(ring, "%i", 3)) // a condition on something else
	if err != nil {
		t.Fatal(err)
	}
	for _, mu := range mutants(m.Func("k")) {
		if strings.Contains(mu.What, "first stage") {
			t.Errorf("%s is no stage", mu.ID)
		}
	}
}
