// Package idx reads data sets in the format of MNIST and its relatives: pictures in one IDX file, labels in another,
// plain or compressed by gzip.
package idx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/idxfile"
)

// Open reads pictures and their labels: unsigned bytes of n×height×width or n×channels×height×width, and n unsigned
// bytes. A sample is float32 [channels, height, width] in [0, 1] and its label.
func Open(images, labels string) (data.Source[data.Pair], error) {
	x, err := parse(images)
	if err != nil {
		return nil, err
	}
	y, err := parse(labels)
	if err != nil {
		return nil, err
	}
	if x.Type != idxfile.Uint8 || len(x.Shape) != 3 && len(x.Shape) != 4 {
		return nil, fmt.Errorf("%s: %v of shape %v is no set of pictures; give unsigned bytes of shape n×height×width", images, x.Type, x.Shape)
	}
	if y.Type != idxfile.Uint8 || len(y.Shape) != 1 {
		return nil, fmt.Errorf("%s: %v of shape %v is no list of labels; give unsigned bytes of shape n", labels, y.Type, y.Shape)
	}
	if x.Shape[0] != y.Shape[0] {
		return nil, fmt.Errorf("%s has %d pictures, %s has %d labels; give files of the same set", images, x.Shape[0], labels, y.Shape[0])
	}
	shape := x.Shape[1:]
	if len(shape) == 2 {
		shape = append([]int{1}, shape...)
	}
	numbers := make([]int64, len(y.Data))
	for i, v := range y.Data {
		numbers[i] = int64(v)
	}
	return data.Pictures(x.Data, shape, numbers)
}

func parse(path string) (*idxfile.File, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := idxfile.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// OpenDir reads the set of a folder by MNIST's file names (train-images-idx3-ubyte and so on, plain or with .gz; a dot
// may stand before idx). Where the folder has only one of the two sets, that is train, and test is nil.
func OpenDir(dir string) (train, test data.Source[data.Pair], err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, err
	}
	if train, err = openPart(dir, "train"); err != nil {
		return nil, nil, err
	}
	if test, err = openPart(dir, "t10k"); err != nil {
		return nil, nil, err
	}
	if train == nil {
		train, test = test, nil
	}
	if train == nil {
		return nil, nil, fmt.Errorf("%s has no train-images-idx3-ubyte or t10k-images-idx3-ubyte, plain or .gz: %w", dir, fs.ErrNotExist)
	}
	return train, test, nil
}

// openPart reads one of a folder's sets, nil when the folder has none of its files.
func openPart(dir, name string) (data.Source[data.Pair], error) {
	images, err := find(dir, name+"-images", "idx3-ubyte")
	if err != nil {
		return nil, err
	}
	labels, err := find(dir, name+"-labels", "idx1-ubyte")
	switch {
	case err != nil:
		return nil, err
	case images == "" && labels == "":
		return nil, nil
	case images == "" || labels == "":
		return nil, fmt.Errorf("%s has only one of %s-images-idx3-ubyte and %[2]s-labels-idx1-ubyte; both are needed: %w", dir, name, fs.ErrNotExist)
	}
	return Open(images, labels)
}

// find returns the path of the first spelling of a name that exists, or nothing.
func find(dir, stem, kind string) (string, error) {
	for _, name := range []string{stem + "-" + kind, stem + "." + kind, stem + "-" + kind + ".gz", stem + "." + kind + ".gz"} {
		path := filepath.Join(dir, name)
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}
