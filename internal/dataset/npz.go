package dataset

import (
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/npz"
)

var npzFile = Reader{
	Name:  "an .npz with images and labels",
	Takes: func(path string) bool { return strings.HasSuffix(path, ".npz") },
	Pictures: func(path string) (train, test data.Source[data.Pair], err error) {
		train, err = npz.Open(path)
		return train, nil, err
	},
}
