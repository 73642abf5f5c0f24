package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte(full), true)
	f.Add([]byte("\xff\xfeC\x00U\x00D\x00A\x00"), false)
	f.Add([]byte(`{"collective_seq_id":1,"entries":[{}]}`), true)
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), false)
	f.Fuzz(func(t *testing.T, b []byte, zip bool) {
		if zip {
			b = zipped(t, b)
		}
		r, err := (&Config{}).Read(context.Background(), "f", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if _, err := json.Marshal(tidied(r)); err != nil {
			t.Fatal(err)
		}
	})
}
