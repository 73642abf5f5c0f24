package dataset

import (
	"fmt"
	"hash/crc32"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/tensor"
)

// summed bounds what a checksum reads.
const summed = 64 << 20

// Fingerprint tells whether a file of n bytes is the one that it was: by its size, and a checksum of its first 64 MiB.
func Fingerprint(f io.Reader, n int) (string, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, io.LimitReader(f, summed)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes with checksum %08x", n, sum.Sum32()), nil
}

// SamplesAtOnce is how many samples of a shape are read together where nothing asks for a number: most, but no more than
// 16 MiB of float32.
func SamplesAtOnce(shape []int, most int) int {
	room := 4 << 20
	for _, d := range shape {
		room /= max(d, 1)
	}
	return max(1, min(most, room))
}

// Classes is one more than the largest label of a set, of at most limit classes.
func Classes(src data.Source[data.Pair], limit int) (int, error) {
	host, err := tensor.Open("cpu")
	if err != nil {
		return 0, err
	}
	most, at := int64(-1), 0
	for b, err := range data.Batches(host.NoGrad(), src, data.Config{Size: SamplesAtOnce(src.Fields()[0].Shape, 1024)}) {
		if err != nil {
			return 0, advice.Explain(err, "check the files of --data")
		}
		for i, y := range tensor.Data[int64](b.Y) {
			if y < 0 || y >= int64(limit) {
				return 0, advice.Failf("relabel the data, or train a model of more classes", "label %d of sample %d is not one of the %d classes", y, at+i, limit)
			}
			most = max(most, y)
		}
		at += b.Y.Size()
	}
	return int(most) + 1, nil
}

// Unit refuses pictures of a path with a value that is not from 0 to 1.
func Unit(path string, src data.Source[data.Pair]) error {
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	at := 0
	for b, err := range data.Batches(host.NoGrad(), src, data.Config{Size: SamplesAtOnce(src.Fields()[0].Shape, 1024)}) {
		if err != nil {
			return advice.Explain(err, "check the files of --data")
		}
		for i, v := range tensor.Data[float32](b.X) {
			if !(v >= 0 && v <= 1) {
				sample := at + i*b.X.Dim(0)/b.X.Size()
				return advice.Failf("save them as uint8, or divide them by the largest", "%s: sample %d has the value %v, and a model that draws means values from 0 to 1", path, sample, v)
			}
		}
		at += b.X.Dim(0)
	}
	return nil
}
