package simdebug

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/simrun"
)

const kernels = "../../examples/sim"

func bug() simrun.Config {
	return simrun.Config{File: kernels + "/sum_bug.ptx", Grid: "4", Block: "256", Args: []string{"f32[1000]=1", "f32[4]", "i32:1000"}, Shared: -1}
}

func right() simrun.Config {
	c := bug()
	c.File = kernels + "/sum.ptx"
	return c
}

// session starts one that ends with the test.
func session(t *testing.T, c simrun.Config) *Session {
	t.Helper()
	s, r, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if r.Stop.Reason != "start" || r.Stop.Event != 1 {
		t.Fatalf("%+v", r.Stop)
	}
	return s
}

// do is one command, which must be right.
func do(t *testing.T, s *Session, line string) *Reply {
	t.Helper()
	r, err := s.Do(t.Context(), strings.Fields(line))
	if err != nil || !r.OK {
		t.Fatalf("%s: %v %+v", line, err, r)
	}
	return r
}

// TestBreak: breakpoints are hit by each warp that comes there, at the line's first instruction, or where they are asked for.
func TestBreak(t *testing.T) {
	s := session(t, right())
	do(t, s, "break 13 block 1")
	r := do(t, s, "continue")
	if a := r.Stop.At; r.Stop.Reason != "breakpoint 1" || a.Block != 1 || a.Source != "./sum.cu:13" || a.Text != "part[t] += part[t + o];" || a.Calls[0].Function != "sum" {
		t.Fatalf("%+v", r.Stop)
	}
	do(t, s, "delete 1")
	do(t, s, "break sum.cu:17 warp 0")
	last := -1
	for range 2 {
		if r = do(t, s, "continue"); r.Stop.At.Block <= last || r.Stop.Warp != 0 || r.Stop.Source != "./sum.cu:17" {
			t.Fatalf("%+v", r.Stop)
		}
		last = r.Stop.At.Block
	}
	do(t, s, "delete")
	do(t, s, "break entry")
	if r = do(t, s, "continue"); r.Stop.At.Block != last+1 || r.Stop.PTXLine != 27 {
		t.Errorf("%+v", r.Stop.At)
	}
	if r = do(t, s, "continue"); !r.Stop.Ended {
		t.Errorf("%+v", r.Stop.At)
	}
}

// TestEnd: what a session finds on its way is what a run finds.
func TestEnd(t *testing.T) {
	softmax := simrun.Config{File: kernels + "/softmax.ptx", Meta: kernels + "/softmax.json", Grid: "4", Args: []string{"f32[4,1000]=1", "f32[4,1000]", "i32:1000"}, Shared: -1}
	parted := bug()
	parted.Schedule, parted.Seed = "independent", 5
	for _, c := range []simrun.Config{right(), bug(), softmax, parted} {
		want, err := simrun.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		s := session(t, c)
		stops := 0
		for r := do(t, s, "continue"); ; r = do(t, s, "continue") {
			if r.Stop.Ended {
				if r.Stop.Found != want.Found || uint64(r.Stop.Event) != want.Instructions && want.Fault == nil || (r.Stop.Fault == "") != (want.Fault == nil) {
					t.Errorf("%s: %+v, want %d findings, %d instructions", c.File, r.Stop, want.Found, want.Instructions)
				}
				break
			}
			if stops++; r.Stop.Finding == nil || r.Stop.Finding.Line != r.Stop.At.PTXLine && r.Stop.Finding.Check != "synccheck" {
				t.Errorf("%+v", r.Stop)
			}
		}
		if stops < want.Found {
			t.Errorf("%s: %d stops, %d findings", c.File, stops, want.Found)
		}
		if r := do(t, s, "findings"); len(r.Findings) != want.Found {
			t.Errorf("%d findings, want %d", len(r.Findings), want.Found)
		}
		if r := do(t, s, "mem arg1 1"); r.Memory.Type != "f32" || c.File == right().File && r.Memory.Values[0] != "256" {
			t.Errorf("%+v", r.Memory)
		}
	}
}

// state is what two visits of one instruction must have in common.
func state(t *testing.T, s *Session) string {
	t.Helper()
	return s.at(s.w).text() + do(t, s, "registers").Text + do(t, s, "shared 0 8").Text + do(t, s, "warps").Text
}

// TestBack: each way back comes to the same registers and memory as the way there, whatever lies in between.
func TestBack(t *testing.T) {
	for _, seed := range []uint64{0, 3} {
		c := right()
		c.Seed = seed
		s := session(t, c)
		do(t, s, "break 13 block 2 warp 1")
		do(t, s, "continue")
		do(t, s, "delete")
		var there []string
		var events []int64
		for range 12 {
			there, events = append(there, state(t, s)), append(events, s.run.event)
			do(t, s, "step warp")
		}
		i := 12
		for n := 1; i-n >= 0; n++ {
			i -= n
			if do(t, s, fmt.Sprint("back ", n)); s.run.event != events[i] || state(t, s) != there[i] {
				t.Fatalf("seed %d: event %d, want %d\n%s\nwas\n%s", seed, s.run.event, events[i], state(t, s), there[i])
			}
		}
		if do(t, s, "goto "+fmt.Sprint(events[7])); state(t, s) != there[7] {
			t.Errorf("goto %d", events[7])
		}
		if do(t, s, "undo"); s.run.event != events[i] || state(t, s) != there[i] {
			t.Errorf("undo: event %d, want %d", s.run.event, events[i])
		}
		if r := do(t, s, "restart"); r.Stop.Event != 1 {
			t.Errorf("restart: %+v", r.Stop)
		}
	}
}

// TestBackFromTheEnd: a kernel that has ended, or that a fault has ended, has a way back too.
func TestBackFromTheEnd(t *testing.T) {
	for _, c := range []simrun.Config{right(), bug()} {
		s := session(t, c)
		do(t, s, "delete finding")
		end := do(t, s, "continue").Stop
		if r := do(t, s, "back"); !end.Ended || r.Stop.Ended || r.Stop.Event != end.Event {
			t.Errorf("%+v, then %+v", end, r.Stop)
		}
	}
}

// TestStep: the lane's next line is another one, the warp's next instruction the one behind, the block's any warp's.
func TestStep(t *testing.T) {
	s := session(t, right())
	do(t, s, "break 8")
	do(t, s, "continue")
	do(t, s, "delete")
	do(t, s, "lane 5")
	seen := map[string]bool{}
	for range 8 {
		before := s.at(s.w).Source
		r := do(t, s, "step")
		if r.Stop.At == nil || r.Stop.At.Source == before || r.Stop.Lane != 5 || r.Stop.Warp != 0 || r.Stop.Thread != [3]uint32{5, 0, 0} {
			t.Fatalf("%+v %+v", r.Stop, r.Stop.At)
		}
		seen[r.Stop.At.Source] = true
	}
	if len(seen) < 3 {
		t.Errorf("%v", seen)
	}
	line := s.at(s.w).PTXLine
	if r := do(t, s, "step warp"); r.Stop.PTXLine <= line || r.Stop.Warp != 0 {
		t.Errorf("%d, then %+v", line, r.Stop.At)
	}
	warps := map[uint32]bool{}
	for range 200 {
		warps[do(t, s, "step block").Stop.Warp] = true
	}
	if len(warps) < 2 {
		t.Errorf("%v", warps)
	}
}

// TestWatch: the launch waits before the write, and tells whose it is; reads only if asked.
func TestWatch(t *testing.T) {
	s := session(t, right())
	do(t, s, "watch arg1+8")
	r := do(t, s, "continue")
	if a := r.Stop.At; !strings.HasPrefix(r.Stop.Reason, "watch 1: lane 0, thread 0,0,0, is about to write 4 bytes at global 0x") || a.Block != 2 || a.Source != "./sum.cu:17" {
		t.Fatalf("%+v %+v", r.Stop, a)
	}
	if v := do(t, s, "mem arg1+8 1 x32").Memory.Values; v[0] != "a5a5a5a5" {
		t.Errorf("before the write there is %v", v)
	}
	do(t, s, "step warp")
	if v := do(t, s, "mem arg1+8 1").Memory.Values; v[0] != "256" {
		t.Errorf("behind it there is %v", v)
	}
	s = session(t, right())
	do(t, s, "watch shared:128 4 reads")
	var reasons []string
	for range 3 {
		reasons = append(reasons, do(t, s, "continue").Stop.Reason)
	}
	if !strings.Contains(reasons[0], "thread 32,0,0, is about to write") || !strings.Contains(strings.Join(reasons, "\n"), "about to read") {
		t.Errorf("%q", reasons)
	}
}

// TestLook: registers, predicates, lanes and memory are what the kernel has computed.
func TestLook(t *testing.T) {
	s := session(t, right())
	do(t, s, "break 13 block 1 warp 0")
	for range 4 {
		do(t, s, "continue")
	}
	r := do(t, s, "lanes") // o is 16: half of the warp is left
	for i, l := range r.Lanes {
		if l.Active != (i < 16) {
			t.Errorf("%+v", l)
		}
	}
	if v := do(t, s, "print %tid.x").Registers[0].Values; v[7] != "7" || v[31] != "31" {
		t.Errorf("%v", v)
	}
	all := map[string]string{}
	for _, v := range do(t, s, "registers").Registers {
		all[v.Name] = v.Values[3]
	}
	if all["%ctaid.x"] != "" || len(all) < 20 || do(t, s, "print %ctaid.x").Registers[0].Values[0] != "1" {
		t.Errorf("%v", all)
	}
	do(t, s, "lane 3")
	words := do(t, s, "shared 0 1").Memory.Values
	bank := do(t, s, "bank 3 1").Memory.Values
	floats := do(t, s, "mem shared:12 1 f32").Memory.Values
	if len(words) != 32 || words[3] != bank[0] || floats[0] != "8" {
		t.Errorf("%v, %v, %v", words, bank, floats)
	}
	if w := do(t, s, "warps").Warps; len(w) != 8 || len(w[0].Parts) != 2 || w[0].Parts[1].State != "waits to meet others of its warp" || w[3].Parts[0].State != "ready" {
		t.Errorf("%+v", w)
	}
	if b := do(t, s, "blocks").Blocks; len(b) != 2 || b[0].State != "ended" || b[1].State != "running" {
		t.Errorf("%+v", b)
	}
	do(t, s, "delete")
	do(t, s, "break 8 block 2 warp 1")
	do(t, s, "continue")
	do(t, s, "warp 0")
	if r := do(t, s, "where"); r.Stop.At.Block != 2 || r.Stop.Warp != 0 || r.Stop.Occupied != "waits at barrier 0" || r.Stop.Source != "./sum.cu:9" {
		t.Errorf("%+v", r.Stop.At)
	}
	if l := do(t, s, "list 12").Source; len(l) != 11 || l[5].Text != "\t\tif (t < o)" {
		t.Errorf("%+v", l)
	}
}

const calls = `.version 7.4
.target sm_80
.address_size 64
.func (.param .b32 r) twice(.param .b32 a)
{
.reg .b32 %x<3>;
ld.param.b32 %x1, [a];
add.s32 %x2, %x1, %x1;
st.param.b32 [r], %x2;
ret;
}
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<4>;
.reg .b64 %rd<3>;
.shared .align 4 .u32 tile[4];
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
st.shared.u32 [tile+4], %r1;
{
.param .b32 a;
.param .b32 b;
st.param.b32 [a], %r1;
call (b), twice, (a);
ld.param.b32 %r2, [b];
}
st.global.u32 [%rd1], %r2;
ret;
}
`

// TestCalls: a function that is called has its registers, and those of who called it.
func TestCalls(t *testing.T) {
	s := session(t, simrun.Config{File: file(t, "k.ptx", calls), Block: "1", Args: []string{"u32[1]"}, Shared: -1})
	if v := do(t, s, "print %r2").Registers[0]; v.Values[0] != "?" || v.Type != "b32" {
		t.Errorf("%+v", v)
	}
	do(t, s, "break 9")
	r := do(t, s, "continue")
	if c := r.Stop.Calls; len(c) != 2 || c[0].Function != "k" || c[1] != (Call{"twice", 24}) || r.Stop.PTX != "st.param.b32 [r], %x2;" || r.Stop.Source != "" || r.Stop.Mask != "00000001" {
		t.Errorf("%+v", r.Stop.At)
	}
	if v := do(t, s, "print %x2 d").Registers[0]; v.Values[0] != "0" || v.Values[1] != "" || do(t, s, "print %r1 x").Registers[0].Values[0] != "00000000" {
		t.Errorf("%+v", v)
	}
	if r := do(t, s, "registers"); len(r.Registers) != 2 || r.Registers[1].Name != "%x2" {
		t.Errorf("%+v", r.Registers)
	}
	if m := do(t, s, "mem tile 4").Memory; m.Type != "u32" || m.Values[1] != "0" || m.Space != "shared" {
		t.Errorf("%+v", m)
	}
	do(t, s, "delete")
	if r := do(t, s, "continue"); r.Stop.Found != 0 || !r.Stop.Ended {
		t.Errorf("%+v", r.Stop)
	}
	for _, line := range []string{"print %r1", "lanes", "step", "shared", "mem shared:0", "warp 0", "watch shared:0", "registers"} {
		if r, err := s.Do(t.Context(), strings.Fields(line)); err != nil || !strings.Contains(r.Error, "ended") {
			t.Errorf("%s behind the end: %v %+v", line, err, r)
		}
	}
}

const endless = `.version 7.4
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<3>;
mov.u32 %r1, 0;
L:
add.u32 %r1, %r1, 1;
bra L;
}
`

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPause: a kernel that never ends waits when it is told to, and nothing of it is left behind; also if the commands end.
func TestPause(t *testing.T) {
	before := runtime.NumGoroutine()
	c := simrun.Config{File: file(t, "k.ptx", endless), Block: "64", Args: []string{"null"}, Shared: -1, StepLimit: 1e15}
	for _, last := range []string{`{"cmd":"quit"}`, ""} {
		in, write := io.Pipe()
		read, out := io.Pipe()
		ended := make(chan error)
		go func() {
			ended <- Serve(t.Context(), c, Console{In: in, Out: out, JSON: true})
			out.Close()
		}()
		lines := bufio.NewScanner(read)
		reply := func() (r Reply) {
			if !lines.Scan() {
				t.Fatal("no reply")
			}
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := reply(); r.Cmd != "start" || r.Stop.PTX != "mov.u32 %r1, 0;" {
			t.Errorf("%+v", r)
		}
		io.WriteString(write, `{"id":7,"cmd":"continue"}`+"\n"+`{"id":"p","cmd":"pause"}`+"\n")
		if r := reply(); r.ID != 7.0 || r.Cmd != "continue" || r.Stop.Reason != "paused" || r.Stop.Ended {
			t.Errorf("%+v", r)
		}
		if r := reply(); r.ID != "p" || !r.OK {
			t.Errorf("%+v", r)
		}
		io.WriteString(write, last+"\n")
		if write.Close(); last != "" {
			reply()
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	settled(t, before)
}

// settled waits for goroutines that are on their way out.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestInterrupted: a context that is done ends a launch that runs.
func TestInterrupted(t *testing.T) {
	before := runtime.NumGoroutine()
	c := simrun.Config{File: file(t, "k.ptx", endless), Block: "64", Args: []string{"null"}, Shared: -1, StepLimit: 1e15}
	ctx, cancel := context.WithCancel(t.Context())
	s, _, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := s.Do(ctx, []string{"continue"}); err != context.Canceled {
		t.Error(err)
	}
	s.Close()
	settled(t, before)
}

// TestTable: every command answers in both forms, with the same text, as help says it is called.
func TestTable(t *testing.T) {
	args := map[string]string{"break": "13", "watch": "arg1", "goto": "3", "lane": "1", "warp": "1", "block": "0", "print": "%tid.x", "mem": "arg0 4", "bank": "2"}
	for _, c := range commands {
		line := strings.TrimSpace(c.name + " " + args[c.name])
		words, err := json.Marshal(map[string]any{"cmd": c.name, "args": strings.Fields(args[c.name])})
		if err != nil {
			t.Fatal(err)
		}
		var plain, out bytes.Buffer
		if err := Serve(t.Context(), right(), Console{In: strings.NewReader("step\n" + line + "\n"), Out: &plain}); err != nil {
			t.Fatal(err)
		}
		if err := Serve(t.Context(), right(), Console{In: strings.NewReader(`{"cmd":"step"}` + "\n" + string(words) + "\n"), Out: &out, JSON: true}); err != nil {
			t.Fatal(err)
		}
		replies := strings.Split(strings.TrimSpace(out.String()), "\n")
		var r Reply
		if err := json.Unmarshal([]byte(replies[len(replies)-1]), &r); err != nil || !r.OK || r.Cmd != c.name || len(replies) != 3 {
			t.Fatalf("%s: %v\n%s", line, err, out.String())
		}
		if _, text, _ := strings.Cut(plain.String(), prompt); !strings.Contains(text, prompt+r.Text) {
			t.Errorf("%s:\n%s\nas JSON\n%s", line, text, r.Text)
		}
		if n := len(strings.Fields(args[c.name])); n < c.least || c.most >= 0 && n > c.most {
			t.Errorf("%s takes %d to %d words", c.name, c.least, c.most)
		}
	}
}

// TestWrong: what is wrong is said, and the session goes on as if nothing had been.
func TestWrong(t *testing.T) {
	s := session(t, right())
	before := state(t, s)
	for line, want := range map[string]string{
		"fly": `no command "fly"`, "b": "0 words", "l": "", "ba": `"ba"`, "break 3": "no code", "break 99999": "nor has any", "break nope.cu:3": "no code", "break x": "not a place",
		"break 13 block": "not understood", "break 13 block x": `"x"`, "break ptx:1000000": "nor has any", "watch local:0": "cannot be watched", "watch %nothing": "no register",
		"watch shared:999999": "not in shared", "watch arg0 0": `"0"`, "watch arg2": "no buffer", "watch arg9": "no buffer", "delete 9": "no breakpoint", "delete x": `"x"`,
		"step far": "no such step", "back 0": `"0"`, "back x": `"x"`, "goto 0": `"0"`, "goto x": `"x"`, "undo": "waited first", "lane 32": `"32"`, "warp 8": `"8"`, "block 3": "does not run",
		"print %zz": "no register", "print %tid.x q": `"q"`, "registers a b": "2 words", "mem": "0 words", "mem x": "no place", "mem arg0 4 q9": `"q9"`, "mem arg0 999999": `"999999"`,
		"mem global:5": "no allocation", "mem global:zz": "no place", "mem arg0+zz": `"zz"`, "mem arg0+9999999": "allocation", "mem local:0": "local memory", "mem param:999": "param memory", "bank 32": `"32"`,
		"shared 99999": `"99999"`, "list 99999": `"99999"`, "list a b c": "3 words", "help fly": `"fly"`, "continue now": "1 words",
	} {
		r, err := s.Do(t.Context(), strings.Fields(line))
		if want == "" {
			continue
		}
		if err != nil || r.OK || r.Error == "" || r.Hint == "" || !strings.Contains(r.Error, want) {
			t.Errorf("%s: %v %+v, want %q", line, err, r, want)
		}
	}
	if got := state(t, s); got != before {
		t.Errorf("%s\nwas\n%s", got, before)
	}
	var out bytes.Buffer
	hostile := "{\n[]\n{\"cmd\":5}\n{\"cmd\":\"where\",\"args\":\"x\"}\n{\"cmd\":\"where\",\"far\":1}\n{\"id\":3}\n\n" + `{"id":4,"cmd":"fly"}` + "\n"
	if err := Serve(t.Context(), right(), Console{In: strings.NewReader(hostile), Out: &out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for line := range strings.SplitSeq(strings.TrimSpace(out.String()), "\n") {
		var r Reply
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err, line)
		}
		if r.Error != "" && r.Hint != "" && !r.OK {
			bad++
		}
	}
	if bad != 7 {
		t.Errorf("%d errors\n%s", bad, out.String())
	}
	if err := Serve(t.Context(), right(), Console{In: strings.NewReader(strings.Repeat("x", longest+1)), Out: io.Discard}); err == nil {
		t.Error("a line without an end is read")
	}
	c := right()
	c.Args = c.Args[:1]
	if _, _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "3 parameters") {
		t.Error(err)
	}
}

// TestFloats: memory's types are read as they are written.
func TestFloats(t *testing.T) {
	for name, want := range map[string][]string{"f32": {"1.5", "-2"}, "f16": {"0", "1.9375", "0", "-2"}, "bf16": {"0", "1.5", "0", "-2"}, "i32": {"1069547520", "-1073741824"},
		"u8": {"0", "0", "192", "63", "0", "0", "0", "192"}, "i16": {"0", "16320", "0", "-16384"}, "x64": {"c00000003fc00000"}, "f64": {"-2.000000474974513"}} {
		n, err := numberOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.list([]byte{0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestWatchBulk: a watch waits before a bulk copy that reads or writes there, and before no other.
func TestWatchBulk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(file, []byte(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
	.reg .b64 %x, %y; .reg .b32 %s, %b; .reg .pred %p;
	.shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
	ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %s, s; mov.u32 %b, bar;
	mbarrier.init.shared::cta.b64 [%b], 1;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 512;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%x+256], 512, [%b];
W:	mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;
	@!%p bra W;
	fence.proxy.async;
	cp.async.bulk.global.shared::cta.bulk_group [%y], [%s], 512;
	cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
	ret;
}
`), 0o666); err != nil {
		t.Fatal(err)
	}
	c := simrun.Config{File: file, Card: "h100-80", Grid: "1", Block: "1", Args: []string{"u8[1024]=1", "u8[1024]=0"}}
	for watch, want := range map[string]string{
		"arg0+700 4 reads": "about to read 512 bytes at global", "arg0+100 4 reads": "", "arg0+768 4 reads": "", "arg1+511 1": "about to write 512 bytes at global",
		"arg1+512 1": "", "shared:16 4": "about to write 512 bytes at shared 0x0",
	} {
		s := session(t, c)
		do(t, s, "watch "+watch)
		r := do(t, s, "continue")
		if got := r.Stop.Reason; want == "" && !r.Stop.Ended || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", watch, got, want)
		}
	}
}

// TestAccesses: what each instruction is about to touch comes, over a whole launch, to what the counters have.
func TestAccesses(t *testing.T) {
	for _, c := range []simrun.Config{
		{File: kernels + "/sum.ptx", Grid: "1", Block: "64", Args: []string{"f32[50]=1", "f32[1]", "i32:50"}, Shared: -1},
		{File: kernels + "/tour.ptx", Kernel: "exchange", Grid: "1", Block: "64", Args: []string{"f32[64]=1", "f32[64]"}, Shared: -1},
	} {
		c.Card, c.Checks, c.Schedule, c.Numerics = "a100-80", "all", "reconverge", "float32"
		want, err := simrun.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		s := session(t, c)
		var sectors, wavefronts, conflicts uint64
		for n := int64(1); ; n++ {
			r := do(t, s, fmt.Sprint("goto ", n))
			if r.Stop.Ended {
				break
			}
			for _, a := range r.Stop.Accesses {
				sectors, wavefronts, conflicts = sectors+a.Sectors, wavefronts+a.Wavefronts, conflicts+a.Conflicts
				if a.Least > a.Sectors || a.Lanes == 0 || a.Bytes == 0 {
					t.Errorf("%+v", a)
				}
			}
		}
		if r := want; sectors != r.GlobalSectors || wavefronts != r.SharedWavefronts || conflicts != r.BankConflicts || sectors == 0 || wavefronts == 0 {
			t.Errorf("%s: %d sectors, %d passes, %d conflicts; the counters have %d, %d and %d", c.File, sectors, wavefronts, conflicts, r.GlobalSectors, r.SharedWavefronts, r.BankConflicts)
		}
	}
}
