package simrun

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const addOne = `.version 7.4
.target sm_80
.address_size 64
.visible .entry add(.param .u64 x, .param .f32 a)
{
.reg .b64 %p, %o; .reg .b32 %t; .reg .f32 %f, %a;
ld.param.u64 %p, [x]; ld.param.f32 %a, [a];
mov.u32 %t, %tid.x;
mul.wide.u32 %o, %t, 4;
add.s64 %p, %p, %o;
ld.global.f32 %f, [%p];
add.f32 %f, %f, %a;
st.global.f32 [%p], %f;
ret;
}
`

// TestServe talks to the server as simgpu.py does: launches that are right, that find something, and after a fault again; and lines
// that are wrong, each of which has an answer.
func TestServe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory")
	memory := make([]byte, 256)
	for i := range 8 {
		binary.LittleEndian.PutUint32(memory[64+4*i:], 0x40000000) // 2
	}
	if err := os.WriteFile(path, memory, 0o600); err != nil {
		t.Fatal(err)
	}
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	launch := func(block, bytes, number string) string {
		return `{"op":"launch","module":0,"kernel":"add","grid":"1","block":"` + block + `","shared":-1,"args":[{"type":"f32","shape":[8],"offset":64,"bytes":` + bytes + `},{"number":"` + number + `"}]}`
	}
	type row struct {
		send, want string
		findings   int
	}
	rows := []row{
		{`{"op":"launch"}`, "there is no card yet", 0},
		{`nonsense`, "invalid character", 0},
		{`{"op":"cards"}`, `"cards":["`, 0},
		{`{"op":"open","check":"nocheck"}`, "no check", 0},
		{`{"op":"open","card":"a100-80","check":"all","memory":"/none/at/all"}`, "no shared memory", 0},
		{`{"op":"open","card":"a100-80","check":"all","memory":` + quoted(path) + `}`, `"compute":80`, 0},
		{launch("8", "32", "1"), "there is no module 0", 0},
		{`{"op":"load","name":"add.ptx","text":"nonsense"}`, "add.ptx:1:1", 0},
		{`{"op":"load","name":"add.ptx","text":` + quoted(addOne) + `}`, `"kernels":{"add":2}`, 0},
		{launch("8", "32", "0.5"), `"kernel":"add"`, 0},
		{launch("9", "32", "1"), "32,", 1}, // out of bounds: the array is as it was
		{launch("8", "32", "1"), `"kernel":"add"`, 0},
		{launch("8", "32", "word"), "is not a number", 0},
		{launch("0", "32", "1"), "is not a size", 0},
		{launch("8", "1000", "1"), "EOF", 0},
		{strings.Replace(launch("8", "32", "1"), `"kernel":"add"`, `"kernel":"none"`, 1), "no kernel", 0},
		{strings.Replace(launch("8", "32", "1"), `"type":"f32"`, `"type":"f33"`, 1), "the types are", 0},
		{launch("8", "32", "-3"), `"kernel":"add"`, 0},
		{`{"op":"dance"}`, "no operation", 0},
	}
	var in, out bytes.Buffer
	for _, r := range rows {
		in.WriteString(r.send + "\n")
	}
	if err := Serve(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(answers) != len(rows) {
		t.Fatalf("%d answers to %d lines\n%s", len(answers), len(rows), out.String())
	}
	for i, r := range rows {
		var a answer
		if err := json.Unmarshal([]byte(answers[i]), &a); err != nil || len(a.Findings) != r.findings || r.findings == 0 && !strings.Contains(answers[i], r.want) {
			t.Errorf("%.80s: %v\n%.600s", r.send, err, answers[i])
		}
		if r.findings > 0 && !strings.Contains(a.Text, "memcheck: out-of-bounds") {
			t.Errorf("%s", a.Text)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if v := binary.LittleEndian.Uint32(got[64+4*i:]); v != 0x3f000000 { // 2 + 0.5 + 1 - 3
			t.Errorf("element %d is %#x", i, v)
		}
	}
}
