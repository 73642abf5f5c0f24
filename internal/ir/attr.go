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
	fieldPrecision
	fieldDims
)

var fieldNames = [...]string{"out", "dtype", "axis", "axes", "keep", "causal", "act", "flag", "precision", "dims"}

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

// set is the attributes that differ from their zero values.
func (a *Attr) set() (f fields) {
	for i, on := range [...]bool{a.Out != nil, a.DType != 0, a.Axis != 0, a.Axes != 0, a.Keep, a.Causal, a.Act != 0, a.Flag != 0, a.Precision != 0, a.Dims != [MaxRank]int32{}} {
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
	r := &table[o.Code].reads
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
	if err := o.checkPrecision(); err != nil {
		return err
	}
	if extra := o.Attr.Flag &^ r.flags; extra != 0 {
		return fmt.Errorf("flag %s is set, which this operation does not have", extra)
	}
	return nil
}
