package data_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"log"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

// Table reads CSV: a line of names, then lines of numbers, of which the last is the class.
func Table(r io.Reader) (data.Source[data.Pair], error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err == nil && len(rows) == 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	columns := len(rows[0]) - 1
	var x []float32
	var y []int64
	for i, row := range rows[1:] {
		for _, cell := range row[:columns] {
			v, err := strconv.ParseFloat(cell, 32)
			if err != nil {
				return nil, fmt.Errorf("row %d: %w", i+1, err)
			}
			x = append(x, float32(v))
		}
		class, err := strconv.ParseInt(row[columns], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		y = append(y, class)
	}
	return data.InMemory(x, []int{columns}, y), nil
}

func ExampleInMemory_csv() {
	set, err := Table(strings.NewReader("height,width,class\n1.5,2,0\n0.5,1,1\n2.5,3,0\n"))
	if err != nil {
		log.Fatal(err)
	}
	train, test := data.Subset(set, 0, 2), data.Subset(set, 2, 3)
	for b, err := range data.Batches(tensor.Best(), train, data.Config{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape(), b.X.Floats(), b.Y.Floats())
	}
	fmt.Println(test.Len(), "held out")
	// Output:
	// [2 2] [1.5 2 0.5 1] [0 1]
	// 1 held out
}
