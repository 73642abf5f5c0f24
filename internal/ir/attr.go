package ir

import (
	"fmt"
	"strings"
)

// fields is a set of attributes of an op.
type fields uint16

const (
	fieldOut fields = 1 << iota
	fieldDType
	fieldAxis
	fieldAxes
	fieldKeep
	fieldCausal
	fieldAct
	fieldFlag
	fieldDims
)

var fieldNames = [...]string{"out", "dtype", "axis", "axes", "keep", "causal", "act", "flag", "dims"}

// String lists the names in the text form.
func (f fields) String() string {
	var names []string
	for i, name := range fieldNames {
		if f>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// perRank stands for as many Dims as the first operand has dimensions.
const perRank = -1

// reads says which attributes a code reads, how many Dims, and which flags.
type reads struct {
	fields fields
	dims   int
	flags  Flag
}

var attrs = [codeCount]reads{
	Reshape: {fields: fieldOut},
	Permute: {fields: fieldDims, dims: perRank},
	Expand:  {fields: fieldOut},
	Slice:   {fields: fieldAxis | fieldDims, dims: 3},
	Full:    {fields: fieldOut},
	Iota:    {fields: fieldOut},
	Uniform: {fields: fieldOut},
	Normal:  {fields: fieldOut},
	RandInt: {fields: fieldOut},
	Copy:    {fields: fieldOut},
	Cast:    {fields: fieldDType},

	Sum:       {fields: fieldAxes | fieldKeep},
	Prod:      {fields: fieldAxes | fieldKeep},
	ReduceMax: {fields: fieldAxes | fieldKeep},
	ReduceMin: {fields: fieldAxes | fieldKeep},
	ArgMax:    {fields: fieldAxis | fieldKeep},
	ArgMin:    {fields: fieldAxis | fieldKeep},
	CumSum:    {fields: fieldAxis},

	Conv2d:           {fields: fieldDims, dims: 7},
	Conv2dGradInput:  {fields: fieldOut | fieldDims, dims: 7},
	Conv2dGradWeight: {fields: fieldOut | fieldDims, dims: 7},
	MaxPool2d:        {fields: fieldDims, dims: 6},
	MaxPool2dGrad:    {fields: fieldOut | fieldDims, dims: 6},
	AvgPool2d:        {fields: fieldDims, dims: 6},
	AvgPool2dGrad:    {fields: fieldOut | fieldDims, dims: 6},

	Gather:        {fields: fieldAxis},
	ScatterAdd:    {fields: fieldAxis},
	EmbeddingGrad: {fields: fieldOut},
	Cat:           {fields: fieldAxis},
	Pad:           {fields: fieldAxis | fieldDims, dims: 3},

	Linear:        {fields: fieldAct},
	Attention:     {fields: fieldCausal},
	AttentionGrad: {fields: fieldCausal},
	SGD:           {fields: fieldFlag, flags: Nesterov | Momentum | First},
	AdamW:         {fields: fieldFlag, flags: Coupled},
}

// set is the attributes that differ from their zero values.
func (a *Attr) set() (f fields) {
	for i, on := range [...]bool{a.Out != nil, a.DType != 0, a.Axis != 0, a.Axes != 0, a.Keep, a.Causal, a.Act != 0, a.Flag != 0, a.Dims != [MaxRank]int32{}} {
		if on {
			f |= 1 << i
		}
	}
	return f
}

// checkAttr reports an attribute that the code does not read, or a value that does not exist.
func (o *Op) checkAttr() error {
	if o.Attr == (Attr{}) {
		return nil
	}
	r := &attrs[o.Code]
	if extra := o.Attr.set() &^ r.fields; extra != 0 {
		return fmt.Errorf("%s is set, which this operation does not read", extra)
	}
	n := r.dims
	if n == perRank {
		n = o.In(0).Rank()
	}
	for i, d := range o.Attr.Dims[n:] {
		if d != 0 {
			return fmt.Errorf("dims[%d] is %d, but this operation reads %d of them", n+i, d, n)
		}
	}
	if int(o.Attr.Act) >= len(actNames) {
		return fmt.Errorf("there is no activation %d", o.Attr.Act)
	}
	if extra := o.Attr.Flag &^ r.flags; extra != 0 {
		return fmt.Errorf("flag %s is set, which this operation does not have", extra)
	}
	return nil
}
