package metric_test

import (
	"fmt"
	"log"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

func ExampleEvaluate() {
	env := tensor.Best()
	model := nn.Flatten{} // takes the larger of two numbers for the class
	set := data.InMemory([]float32{9, 1, 2, 8, 7, 3, 6, 4}, []int{2}, []int64{0, 1, 0, 1})
	scores, err := metric.Evaluate(env, model, set)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("accuracy %.2f, loss %.2f, %d samples\n", scores.Accuracy, scores.Loss, scores.Samples)
	// Output: accuracy 0.75, loss 0.54, 4 samples
}

func ExampleMean_loop() {
	env := tensor.Best()
	model := nn.Flatten{}
	set := data.InMemory([]float32{9, 1, 2, 8, 7, 3, 6, 4}, []int{2}, []int64{0, 1, 0, 1})

	var loss metric.Mean
	for b, err := range data.Batches(env.NoGrad().Eval(), set, data.Config{Size: 3}) {
		if err != nil {
			log.Fatal(err)
		}
		loss.Add(nn.CrossEntropy(model.Forward(b.X), b.Y), b.Size()) // a mean over so many samples
	}
	fmt.Printf("loss %.2f of %d samples\n", loss.Value(), loss.Count())
	// Output: loss 0.54 of 4 samples
}

func ExampleMean() {
	env := tensor.Best()
	var loss metric.Mean
	loss.Add(env.Full(1), 30) // the mean of 30 samples
	loss.Add(env.Full(3), 10)
	fmt.Println(loss.Value(), loss.Count())
	// Output: 1.5 40
}

func ExampleConfusion() {
	env := tensor.Best()
	c := metric.NewConfusion(env, 2)
	c.Add(tensor.From(env, []float32{9, 1, 2, 8, 6, 4}, 3, 2), tensor.From(env, []int64{0, 1, 1}, 3))
	fmt.Println(c.Counts(), c.Recall())
	// Output: [[1 0] [1 1]] [1 0.5]
}
