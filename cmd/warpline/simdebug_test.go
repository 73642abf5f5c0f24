package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/simdebug"
)

// TestSimDebug: the command takes what sim run takes, and has answers for people and for programs. docs/simulator.md has a session
// that is run, and internal/simdebug knows what commands do.
func TestSimDebug(t *testing.T) {
	r := simRoom(t)
	args := strings.Fields("sim debug sum_bug.ptx --grid 4 --block 256 --check racecheck --seed 2 f32[1000]=1 f32[4] i32:1000")
	r.types("(sim) continue\n(sim) nonsense\n(sim) quit\n(sim) where\n")
	status, stdout, stderr := command(t.Context(), args...)
	if status != exitDone || stderr != "" || !strings.Contains(stdout, "(sim) continue\nmemcheck: out-of-bounds read\n  4 bytes at global 0x") || !strings.Contains(stdout, "hint: help lists the commands\n") || !strings.HasSuffix(stdout, "(sim) quit\n") {
		t.Errorf("%d\n%s\n%s", status, stdout, stderr)
	}
	r.types(`(sim) {"id":1,"cmd":"print","args":["%tid.x"]}` + "\n(sim) {\n")
	status, stdout, stderr = command(t.Context(), append(args, "--json")...)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var tid, bad simdebug.Reply
	if status != exitDone || stderr != "" || len(lines) != 3 {
		t.Fatalf("%d\n%s\n%s", status, stdout, stderr)
	}
	r.check(json.Unmarshal([]byte(lines[1]), &tid))
	r.check(json.Unmarshal([]byte(lines[2]), &bad))
	if !tid.OK || tid.Registers[0].Type != "u32" || len(tid.Registers[0].Values) != 32 || bad.OK || bad.Hint == "" {
		t.Errorf("%+v\n%+v", tid, bad)
	}
}
