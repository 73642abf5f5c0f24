package kineto

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// BenchmarkRead is the hot path: bytes taken apart to events.
func BenchmarkRead(b *testing.B) {
	data, err := io.ReadAll(sample(b, "kineto-resnet50-workers0.pt.trace.json.gz"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(context.Background(), bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiagnose adds the figures and the rules, and decompression by the standard library.
func BenchmarkDiagnose(b *testing.B) {
	for b.Loop() {
		if _, err := Diagnose(context.Background(), "", sample(b, "kineto-resnet50-workers0.pt.trace.json.gz")); err != nil {
			b.Fatal(err)
		}
	}
}
