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

func ExampleConfusion_Average() {
	env := tensor.Best()
	c := metric.NewConfusion(env, 3)
	c.Add(tensor.From(env, []float32{9, 1, 0, 2, 8, 0, 6, 4, 0, 0, 1, 2}, 4, 3), tensor.From(env, []int64{0, 1, 1, 2}, 4))
	macro := c.Average(metric.Macro)
	fmt.Printf("F1 %.3f, precision %.3f, recall %.3f, mean IoU %.3f\n", macro.F1, macro.Precision, macro.Recall, macro.IoU)
	// Output: F1 0.778, precision 0.833, recall 0.833, mean IoU 0.667
}

func ExampleRegression() {
	env := tensor.Best()
	var r metric.Regression
	r.Add(tensor.From(env, []float32{2.5, 0, 2, 8}, 4), tensor.From(env, []float32{3, -0.5, 2, 7}, 4)) // batch by batch
	e := r.Value()
	fmt.Printf("MAE %.2f, RMSE %.3f, R² %.3f\n", e.MAE, e.RMSE, e.R2)
	// Output: MAE 0.50, RMSE 0.612, R² 0.949
}

func ExampleROC() {
	env := tensor.Best()
	var r metric.ROC
	r.Add(tensor.From(env, []float32{0.1, 0.4, 0.35, 0.8}, 4), tensor.From(env, []int64{0, 0, 1, 1}, 4))
	fmt.Println(r.AUC(metric.Macro))
	// Output: 0.75
}

func ExampleCalibration() {
	env := tensor.Best()
	c := metric.NewCalibration(env, 10)
	c.Add(tensor.From(env, []float64{0.75, 0.25, 0.75, 0.25}, 2, 2), tensor.From(env, []int64{0, 1}, 2)) // sure of 75 %, right in half
	fmt.Println(c.Error())
	// Output: 0.25
}

func ExampleCorrectTopK() {
	env := tensor.Best()
	logits := tensor.From(env, []float32{3, 2, 1, 1, 2, 3}, 2, 3)
	fmt.Println(metric.CorrectTopK(logits, tensor.From(env, []int64{1, 0}, 2), 2).Item())
	// Output: 1
}
