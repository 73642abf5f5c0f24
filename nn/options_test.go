package nn

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// optioned are layers of kinds of golden cases, whose options are those of a config, and what else a case may have or not.
type optioned struct {
	kinds  []string
	config func(c *goldenCase) any
	// shared are fields that each case sets as its shapes ask for, and extra inputs or attributes that are options too.
	shared, extra string
	// never are pairs of values that there are no cases of, and fields that are none of the layer's, with a reason.
	never map[string]string
}

var optionTable = map[string]optioned{
	"LSTM": {[]string{"LSTM"}, (*goldenCase).recurrentAny, "", "in.h in.lengths", map[string]string{
		"ReLU": "of RNN", "Layers=default Dropout=given": "dropped between layers"}},
	"GRU": {[]string{"GRU"}, (*goldenCase).recurrentAny, "", "in.h in.lengths", map[string]string{
		"ReLU": "of RNN", "Proj": "of LSTM", "Layers=default Dropout=given": "dropped between layers"}},
	"RNN": {[]string{"RNN"}, (*goldenCase).recurrentAny, "", "in.h in.lengths", map[string]string{
		"Proj": "of LSTM", "Layers=default Dropout=given": "dropped between layers"}},
	"LSTMCell": {[]string{"LSTMCell"}, func(c *goldenCase) any { return c.cell() }, "", "in.h", map[string]string{"ReLU": "of RNNCell"}},
	"GRUCell":  {[]string{"GRUCell"}, func(c *goldenCase) any { return c.cell() }, "", "in.h", map[string]string{"ReLU": "of RNNCell"}},
	"RNNCell":  {[]string{"RNNCell"}, func(c *goldenCase) any { return c.cell() }, "", "in.h", nil},
	"MultiheadAttention": {[]string{"MultiheadLayer"}, func(c *goldenCase) any { return c.multihead() }, "Heads", "in.key_padding_mask in.attn_mask causal",
		map[string]string{"in.attn_mask=false causal=true": "it is given as a mask, too"}},
	"Attention": {[]string{"MultiheadAttention"}, func(c *goldenCase) any {
		return AttentionConfig{Heads: c.Attrs.int("heads", 0), Causal: c.Attrs.flag("causal"), Window: c.window(), NoBias: c.Attrs["bias"] == false}
	}, "Heads", "in.key_padding_mask", map[string]string{"Dropout": "random: TestAttentionWithDropout"}},
	"TransformerEncoder": {[]string{"TransformerEncoder"}, (*goldenCase).transformerAny, "Heads Inner", "causal in.keys layers",
		map[string]string{"causal=true in.keys=true": "one mask of a kind in each case"}},
	"TransformerDecoder": {[]string{"TransformerDecoder"}, (*goldenCase).transformerAny, "Heads Inner", "causal in.keys layers",
		map[string]string{"causal=true in.keys=true": "one mask of a kind in each case"}},
	"Conv1d": {[]string{"Conv1d"}, func(c *goldenCase) any { return c.convolution() }, "", "samples", noSame},
	"Conv2d": {[]string{"Conv2dPadded"}, func(c *goldenCase) any { return c.convolution() }, "", "samples", noSame},
	"ConvTranspose1d": {[]string{"ConvTranspose1d"}, func(c *goldenCase) any { return c.transposed() }, "", "samples size",
		map[string]string{"OutputPadding=given size=true": "one follows from the other"}},
	"ConvTranspose2d": {[]string{"ConvTranspose2d"}, func(c *goldenCase) any { return c.transposed() }, "", "samples size",
		map[string]string{"OutputPadding=given size=true": "one follows from the other"}},
	"Upsample": {[]string{"interpolate"}, func(c *goldenCase) any { return upsampled(c) }, "", "rank", map[string]string{
		"Size=given Scale=given": "one of them", "Size=default Scale=default": "one of them", "Size=given Recompute=true": "from a scale", "Scale=default Recompute=true": "from a scale",
		"Mode=3 rank=3": "of pictures", "Mode=3 rank=5": "of pictures", "Antialias=true rank=3": "of pictures", "Antialias=true rank=5": "of pictures",
		"Mode=0 AlignCorners=true": "of linear and cubic ones", "Mode=1 AlignCorners=true": "likewise", "Mode=4 AlignCorners=true": "likewise",
		"Mode=0 Antialias=true": "likewise", "Mode=1 Antialias=true": "likewise", "Mode=4 Antialias=true": "likewise"}},
	"NLL":           {[]string{"nll_loss"}, (*goldenCase).none, "", "reduction in.weight ignore_index", nil},
	"CrossEntropy":  {[]string{"cross_entropy"}, (*goldenCase).none, "", "reduction in.weight ignore_index label_smoothing", nil},
	"KLDiv":         {[]string{"kl_div"}, (*goldenCase).none, "", "reduction log_target", nil},
	"BCE":           {[]string{"binary_cross_entropy"}, (*goldenCase).none, "", "reduction in.weight", nil},
	"BCEWithLogits": {[]string{"bce_with_logits"}, (*goldenCase).none, "", "reduction in.weight in.pos_weight", nil},
	"Focal":         {[]string{"sigmoid_focal_loss"}, (*goldenCase).none, "", "reduction", nil},
	"MultiMargin": {[]string{"multi_margin_loss"}, func(c *goldenCase) any {
		return MultiMarginConfig{P: c.Attrs.int("p", 0) - 1, Margin: c.Attrs.number("margin", 0) - 1}
	}, "Weights", "reduction in.weight", nil},
	"TripletMargin": {[]string{"triplet_margin_loss"}, func(c *goldenCase) any {
		return TripletConfig{Margin: c.Attrs.number("margin", 0) - 1, P: c.Attrs.extended("p", 0) - 2, Eps: c.Attrs.number("eps", 0) - 1e-6, Swap: c.Attrs.flag("swap")}
	}, "", "reduction", nil},
	"GaussianNLL": {[]string{"gaussian_nll_loss"}, func(c *goldenCase) any {
		return GaussianNLLConfig{Full: c.Attrs.flag("full"), Eps: c.Attrs.number("eps", 0) - 1e-6}
	}, "", "reduction", nil},
	"PoissonNLL": {[]string{"poisson_nll_loss"}, func(c *goldenCase) any {
		return PoissonNLLConfig{Rate: !c.Attrs.flag("log_input"), Full: c.Attrs.flag("full"), Eps: c.Attrs.number("eps", 0) - 1e-8}
	}, "", "reduction", nil},
}

// none is a config without fields: options of the case are attributes.
func (c *goldenCase) none() any { return struct{}{} }

var noSame = map[string]string{"Stride=given Same=true": "it keeps the size", "Padding=given Same=true": "it is the padding"}

// recurrentAny counts layers beyond the first.
func (c *goldenCase) recurrentAny() any {
	config := c.recurrent()
	config.Layers--
	return config
}

func (c *goldenCase) transformerAny() any {
	return c.transformer()
}

// choices are the options of a case and their values.
func (o *optioned) choices(c *shapedCase) map[string]string {
	all := map[string]string{}
	v := reflect.ValueOf(o.config(&c.goldenCase))
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		switch {
		case slices.Contains(strings.Fields(o.shared), name) || o.never[name] != "":
		case field.Kind() == reflect.Bool || field.Kind() == reflect.Int && field.Type() != reflect.TypeFor[int]():
			all[name] = fmt.Sprint(field.Interface())
		case field.IsZero():
			all[name] = "default"
		default:
			all[name] = "given"
		}
	}
	for _, name := range strings.Fields(o.extra) {
		value := any(c.shapes[name] != nil)
		switch name {
		case "samples":
			value = len(c.shapes["in.x"]) == len(c.shapes["param.weight"])
		case "rank":
			value = len(c.shapes["in.x"])
		case "layers":
			value = c.Attrs.int("layers", 0)
		case "size", "causal", "log_target", "label_smoothing", "ignore_index":
			value = c.Attrs[name] != nil && c.Attrs[name] != false && c.Attrs[name] != 0. && c.Attrs[name] != -100.
		case "reduction":
			value = c.Attrs.text(name)
		}
		all[name] = fmt.Sprint(value)
	}
	return all
}

// TestOptionsAreCompared: of the layers with many options every pair of values of two options has a golden case; a new field of
// their configs is an option that has none.
func TestOptionsAreCompared(t *testing.T) {
	all := everyGolden(t)
	for name, o := range optionTable {
		values, pairs := map[string]map[string]bool{}, map[string]bool{}
		for _, c := range all {
			if !slices.Contains(o.kinds, c.Layer) {
				continue
			}
			choices := o.choices(&c)
			for a, x := range choices {
				if values[a] == nil {
					values[a] = map[string]bool{}
				}
				values[a][x] = true
				for b, y := range choices {
					pairs[a+"="+x+" "+b+"="+y] = true
				}
			}
		}
		if len(values) == 0 {
			t.Errorf("%s has no golden cases", name)
		}
		options := slices.Sorted(maps.Keys(values))
		for i, a := range options {
			if len(values[a]) < 2 {
				t.Errorf("%s: %s is %v in all golden cases: add it to layers_options.py, and run layers_reference.py", name, a, slices.Sorted(maps.Keys(values[a])))
			}
			for _, b := range options[i+1:] {
				for x := range values[a] {
					for y := range values[b] {
						one, other := a+"="+x, b+"="+y
						why := o.never[one+" "+other] + o.never[other+" "+one]
						switch had := pairs[one+" "+other]; {
						case !had && why == "":
							t.Errorf("%s: no golden case of %s with %s: layers_options.py makes them", name, one, other)
						case had && why != "":
							t.Errorf("%s: there is a golden case of %s with %s, which never is said of", name, one, other)
						}
					}
				}
			}
		}
	}
}
