package tfevents_test

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/tfevents"
)

// write is what the golden file holds.
func write(to io.Writer) error {
	now := time.UnixMicro(1_700_000_000_250_000)
	w, err := tfevents.NewWriter(to, now)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		step int
		tag  string
		v    float64
	}{{1, "loss/train", 2.5}, {300, "loss/held out", -1e-30}, {70000, "accuracy", 0.875}} {
		if err := w.Scalar(now, s.step, s.tag, s.v); err != nil {
			return err
		}
	}
	return nil
}

// TestBytes: a file is TensorBoard's own to the byte (bench/pytorch/tensorboard_golden.py).
func TestBytes(t *testing.T) {
	want, err := os.ReadFile("testdata/scalars.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v:\n% x, want\n% x", err, got.Bytes(), want)
	}
}

// TestFull: what cannot be written is an error, wherever the room ends.
func TestFull(t *testing.T) {
	var whole bytes.Buffer
	if err := write(&whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole.Len() {
		if err := write(&testutil.FailingWriter{N: int64(n)}); err == nil {
			t.Fatalf("no error with room for %d bytes", n)
		}
	}
}
