package simrun

import (
	"encoding/json"
	"testing"
)

// TestSources: every figure of every card and processor, whatever fields there will be, says where it is from, and nothing else does.
func TestSources(t *testing.T) {
	var rows []any
	for _, c := range Cards() {
		rows = append(rows, c)
	}
	for _, c := range append(CPUs(), MeasuredCPU("some", 4, 3000, 1e12, 1e10)) {
		rows = append(rows, c)
	}
	texts := map[string]bool{"kind": true, "name": true, "model": true, "measured": true, "source": true, "multiprocessor_source": true, "sources": true}
	for _, row := range rows {
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatal(err)
		}
		sources := fields["sources"].(map[string]any)
		for name := range fields {
			unknown := fields["measured"] == true && fields[name] == 0.0 // not looked for
			if from, _ := sources[name].(string); !texts[name] && !unknown && from == "" {
				t.Errorf("%v: nothing says where %s is from", fields["name"], name)
			}
		}
		for name := range sources {
			if fields[name] == nil || texts[name] {
				t.Errorf("%v: a source of %s, which is no figure", fields["name"], name)
			}
		}
	}
}
