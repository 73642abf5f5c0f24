// Package npz reads data sets of pictures that NumPy saved: an archive with the arrays images (n×channels×height×width)
// and labels (n).
package npz

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/npy"
)

// limit bounds the unpacked arrays of an archive, in bytes.
const limit = 32 << 30

// Open reads a data set. Images are float32, taken as they are, or uint8, divided by 255; labels are of any integer
// type. A sample is float32 [channels, height, width] and its label.
func Open(path string) (data.Source[data.Pair], error) {
	src, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

func open(path string) (data.Source[data.Pair], error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a, err := npy.OpenZip(f, info.Size(), limit)
	if err != nil {
		return nil, err
	}
	images, err := a.Array("images")
	if err != nil {
		return nil, named(err)
	}
	labels, err := a.Array("labels")
	if err != nil {
		return nil, named(err)
	}
	return pair(images, labels)
}

// named is an error of reading an array, with the names that arrays should have.
func named(err error) error {
	return fmt.Errorf("%w; write it by numpy.savez(path, images=x, labels=y)", err)
}

func pair(images, labels *npy.Array) (data.Source[data.Pair], error) {
	if len(images.Shape) != 4 {
		return nil, fmt.Errorf("images have shape %v; reshape them to n×channels×height×width", images.Shape)
	}
	if len(labels.Shape) != 1 || labels.Shape[0] != images.Shape[0] {
		return nil, fmt.Errorf("labels have shape %v for %d images; give one label for each", labels.Shape, images.Shape[0])
	}
	y, err := integers(labels)
	if err != nil {
		return nil, err
	}
	switch images.DType {
	case "|u1":
		return data.Pictures(images.Data, images.Shape[1:], y)
	case "<f4":
		x := make([]float32, len(images.Data)/4)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(images.Data[4*i:]))
		}
		return data.InMemory(x, images.Shape[1:], y), nil
	}
	return nil, fmt.Errorf("images are %s; save them as float32, or as uint8 to be divided by 255", images.DType)
}

// integers widens labels of any integer type.
func integers(a *npy.Array) ([]int64, error) {
	le, b := binary.LittleEndian, a.Data
	read := map[string]func(i int) int64{
		"|u1": func(i int) int64 { return int64(b[i]) },
		"|i1": func(i int) int64 { return int64(int8(b[i])) },
		"<u2": func(i int) int64 { return int64(le.Uint16(b[2*i:])) },
		"<i2": func(i int) int64 { return int64(int16(le.Uint16(b[2*i:]))) },
		"<u4": func(i int) int64 { return int64(le.Uint32(b[4*i:])) },
		"<i4": func(i int) int64 { return int64(int32(le.Uint32(b[4*i:]))) },
		"<u8": func(i int) int64 { return int64(le.Uint64(b[8*i:])) },
		"<i8": func(i int) int64 { return int64(le.Uint64(b[8*i:])) },
	}[a.DType]
	if read == nil {
		return nil, fmt.Errorf("labels are %s; save them as integers", a.DType)
	}
	out := make([]int64, a.Shape[0])
	for i := range out {
		out[i] = read(i)
	}
	return out, nil
}
