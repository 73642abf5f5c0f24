package table_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/tensor"
)

const houses = `rooms,city,heating,sold
3,Bonn,gas,no
5,Ulm,,yes
4,Bonn,wood,yes
2,Ulm,gas,no
`

func ExampleFit() {
	t, err := table.Read("houses.csv", strings.NewReader(houses), table.Config{}) // table.Open reads a file
	if err != nil {
		log.Fatal(err)
	}
	train, test, err := t.SplitBy("sold", 0.5, 1)
	if err != nil {
		log.Fatal(err)
	}
	enc, err := table.Fit(t, train, table.Encoding{Target: "sold", Drop: []string{"heating"}, Unknown: table.Other})
	if err != nil {
		log.Fatal(err)
	}
	set, err := enc.Source(t, train)
	if err != nil {
		log.Fatal(err)
	}
	for b, err := range data.Batches(tensor.Best(), set, data.Config{Size: 2}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.X.Shape(), b.Y.Floats(), enc.Classes(), len(test))
	}
	// Output: [2 4] [0 1] [no yes] 2
}

func ExampleEncoder_Names() {
	t, err := table.Read("houses.csv", strings.NewReader(houses), table.Config{})
	if err != nil {
		log.Fatal(err)
	}
	enc, err := table.Fit(t, []int{0, 1, 3}, table.Encoding{Target: "rooms", Drop: []string{"sold"}})
	if err != nil {
		log.Fatal(err)
	}
	x, err := enc.X(t, []int{1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n%q %v\n", enc, enc.Names(), x)
	_, err = enc.X(t, []int{2})
	fmt.Println(err)
	// Output:
	// regression of "rooms" from 4 inputs of 2 columns (f32)
	// ["city=Bonn" "city=Ulm" "heating=gas" "heating missing"] [0 1 0 1]
	// houses.csv, line 4, column "heating": "wood" is none of the 1 texts of training
}
