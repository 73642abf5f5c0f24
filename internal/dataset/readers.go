package dataset

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/advice"
)

// Readers are what reads the files of a data set: the first that takes a path. See docs/add-a-row.md.
var Readers = []*Reader{
	&idxFolder,
	&idxPair,
	&npzFile,
	&plainText,
}

// Reader reads the data sets of one format, of pictures or of text.
type Reader struct {
	Name  string // what it takes, for people: "an .npz with images and labels"
	Takes func(path string) bool

	// Pictures opens pictures with their labels. test is the part of a set that is for scores; nil: it has none.
	Pictures func(path string) (train, test data.Source[data.Pair], err error)

	// Text reads all of a text.
	Text func(path string) ([]byte, error)
}

// picturesOf and textOf tell readers apart.
func picturesOf(r *Reader) bool { return r.Pictures != nil }
func textOf(r *Reader) bool     { return r.Text != nil }

// names tells people what can be read.
func names(is func(r *Reader) bool) string {
	var list []string
	for _, r := range Readers {
		if is(r) {
			list = append(list, r.Name)
		}
	}
	if n := len(list); n > 1 {
		list = append(list[:n-2], list[n-2]+" or "+list[n-1])
	}
	return strings.Join(list, ", ")
}

// Help tells people what can be read.
func Help() string {
	return "pictures: " + names(picturesOf) + "; gpt: " + names(textOf) + "; tabular: a table in CSV, TSV or JSON lines"
}

// reader is the first that takes a path, or nil.
func reader(path string, is func(r *Reader) bool) *Reader {
	for _, r := range Readers {
		if is(r) && r.Takes(path) {
			return r
		}
	}
	return nil
}

// Pictures reads a set of pictures; an empty path is drawn digits. test is nil when the set has no part of its own for it.
func Pictures(path string) (train, test data.Source[data.Pair], err error) {
	hint := "give --data " + names(picturesOf)
	if path == "" {
		train, test = drawn()
		return train, test, nil
	}
	r := reader(path, picturesOf)
	if r == nil {
		if _, err := os.Stat(path); err != nil {
			return nil, nil, advice.Explain(err, hint)
		}
		return nil, nil, advice.Failf(hint, "%s is no set of pictures that can be read", path)
	}
	train, test, err = r.Pictures(path)
	if err == nil && train.Len() == 0 {
		err = advice.Failf(hint, "%s has no pictures", path)
	}
	return train, test, advice.Explain(err, hint)
}

// Text reads a text.
func Text(path string) ([]byte, error) {
	hint := "give --data " + names(textOf)
	r := reader(path, textOf)
	if r == nil {
		return nil, advice.Failf(hint, "%s is no text that can be read", path)
	}
	raw, err := r.Text(path)
	return raw, advice.Explain(err, hint)
}

// IsFile tells a file from a folder and from nothing.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Absolute makes a path independent of the folder that a program runs in. It may be two, joined by a comma.
func Absolute(path string) string {
	if path == "" {
		return ""
	}
	first, second, two := twoFiles(path)
	abs, err := filepath.Abs(first)
	if err != nil {
		return path
	}
	if two {
		return abs + "," + Absolute(second)
	}
	return abs
}

// twoFiles splits IMAGES,LABELS, unless that is the name of something.
func twoFiles(path string) (images, labels string, ok bool) {
	if _, err := os.Stat(path); err == nil {
		return path, "", false
	}
	return strings.Cut(path, ",")
}
