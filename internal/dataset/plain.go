package dataset

import (
	"os"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/digits"
)

// plainText takes what no other reader of text does.
var plainText = Reader{
	Name:  "a text file",
	Takes: func(string) bool { return true },
	Text:  os.ReadFile,
}

// sizes of the set of drawn digits.
const (
	drawnTrain = 60_000
	drawnTest  = 2_000
)

// drawn are digits that are drawn when they are asked for.
func drawn() (train, test data.Source[data.Pair]) { return digits.Split(drawnTrain, drawnTest) }
