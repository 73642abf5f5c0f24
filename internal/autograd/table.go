package autograd

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ir"
)

// byName are the rules that rows name.
var byName = map[string]*Rule{
	"matmul":             of(partial{needY, matMulLeft}, partial{needX, matMulRight}),
	"conv2d":             of(partial{needY, convInput}, partial{needX, convWeight}, partial{nothing, convBias}),
	"conv2d_grad_input":  of(partial{needY, convGradInputG}, partial{needX, convGradInputW}),
	"conv2d_grad_weight": of(partial{needY, convGradWeightG}, partial{needX, convGradWeightX}),
	"max_pool2d":         of(partial{Saves{Out: 1 << 1}, maxPoolGrad}),
	"max_pool2d_grad":    of(partial{needY, maxPoolGradG}, partial{}),
	"avg_pool2d":         fromG(avgPoolGrad),
	"avg_pool2d_grad":    fromG(avgPoolGradG),
	"resample":           fromG(resampleGrad),
	"resample_grad":      fromG(resampleGradG),
	"linear":             {Save: linearSave, Grad: linearGrad},
	"bias_grad":          {Save: biasGradSave, Grad: biasGradGrad},
	"again":              fromG(again),
	"sum_squares":        {Save: sumSquaresSave, Grad: sumSquaresGrad},
	"sum":                fromG(sumGrad),
	"prod":               of(partial{needX, prodGrad}),
	"extreme":            of(partial{Saves{In: 1, Out: 1}, extremeGrad}),
	"cumsum":             fromG(cumSumGrad),
	"pass":               fromG(pass),
	"cast":               fromG(castGrad),
	"gather":             of(partial{needY, gatherGrad}, partial{}),
	"scatter_add":        of(partial{nothing, pass}, partial{}, partial{needY, scatterSource}),
	"embedding":          of(partial{needY, embeddingGrad}, partial{}),
	"embedding_grad":     of(partial{needY, embeddingGradG}, partial{}),
	"cat":                {Save: saveNothing, Grad: catGrad},
	"pad":                fromG(padGrad),
	"sort":               of(partial{Saves{Out: 1 << 1}, sortGrad}),
	"reshape":            fromG(reshapeGrad),
	"permute":            fromG(permuteGrad),
	"expand":             fromG(expandGrad),
	"slice":              fromG(sliceGrad),
	"softmax":            fromY(softmaxGrad),
	"log_softmax":        fromY(logSoftmaxGrad),
	"softmax_grad":       of(partial{needXY, softmaxGradY}, partial{needX, gradOfG}),
	"log_softmax_grad":   of(partial{needXY, logSoftmaxGradY}, partial{needX, logSoftmaxGradG}),
	"cross_entropy":      {Save: crossEntropySave, Grad: crossEntropyGrad},
	"cross_entropy_grad": {Save: crossEntropyTwiceSave, Grad: crossEntropyTwice},
	"layer_norm":         {Save: layerNormSave, Grad: layerNormGrad},
	"layer_norm_grad":    {Save: layerNormTwiceSave, Grad: layerNormTwice},
	"add_norm":           {Save: addNormSave, Grad: addNormGrad},
	"add_norm_grad":      {Save: addNormTwiceSave, Grad: addNormTwice},
	"rms_norm":           {Save: rmsNormSave, Grad: rmsNormGrad},
	"rms_norm_grad":      {Save: rmsNormTwiceSave, Grad: rmsNormTwice},
	"batch_norm":         {Save: batchNormSave, Grad: batchNormGrad},
	"batch_norm_grad":    {Save: batchNormTwiceSave, Grad: batchNormTwice},
	"batch_norm_eval":    batchNormEval,
	"attention":          {Save: attentionSave, Grad: attentionGrad},
	"attention_grad":     {Save: attentionTwiceSave, Grad: attentionTwice},

	"self_attention":      {Save: attentionSave, Grad: selfAttentionGrad},
	"self_attention_grad": {Save: selfAttentionTwiceSave, Grad: selfAttentionTwice},

	"linear_cross_entropy":      {Save: linearCrossEntropySave, Grad: linearCrossEntropyGrad},
	"linear_cross_entropy_grad": {Save: linearCrossEntropyTwiceSave, Grad: linearCrossEntropyTwice},

	"lstm_step":      {Save: lstmStepSave, Grad: lstmStepGrad},
	"lstm_step_grad": {Save: lstmStepTwiceSave, Grad: lstmStepTwice},
}

// rules is the table behind [Of], made of the ops' rows.
var rules = func() (table [ir.Codes]*Rule) {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		g := &code.Row().Gradient
		switch {
		case g.Rule != "":
			table[code] = byName[g.Rule]
		case g.Of != nil:
			table[code] = written(code)
		}
		if (table[code] == nil) != (g.None != "") {
			panic(fmt.Sprintf("autograd: the row of %s says %+v", code, *g))
		}
	}
	return table
}()
