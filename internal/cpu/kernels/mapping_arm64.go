//go:build !purego

package kernels

// loops are the functions of mappings, one for each: the generator has them in the same order.
var loops [mappings]mappingLoop = mappingsNEON

// loop is the function of a mapping.
func (m mapping) loop() mappingLoop { return loops[m] }

// vectors are the loops of the active level.
func vectors() *vectorKernels { return &vectorsNEON }
