package dataset

import (
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/idx"
)

var idxFolder = Reader{
	Name: "a folder of IDX files by MNIST's names",
	Takes: func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	},
	Pictures: idx.OpenDir,
}

var idxPair = Reader{
	Name: "IMAGES,LABELS in IDX",
	Takes: func(path string) bool {
		_, _, two := twoFiles(path)
		return two
	},
	Pictures: func(path string) (train, test data.Source[data.Pair], err error) {
		pictures, labels, _ := twoFiles(path)
		train, err = idx.Open(pictures, labels)
		return train, nil, err
	},
}
