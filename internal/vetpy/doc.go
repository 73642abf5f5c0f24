// Package vetpy finds what training programs in Python do wrong by reading them: PyTorch's own loops, Lightning's modules and those
// of Hugging Face's Accelerate. Nothing is run.
//
// A file is walked as it would be executed, with what is known of each value in place of the value ([value]): which is a model,
// an optimizer, a loss that carries its graph, a batch that still lies on the host. Functions of the same file are entered where
// they are called, so that a loop in one function and the step in another are one loop. What happens on the way to tensors and
// optimizers is a trace of events, with the loops around each; rules look at the events of a loop in their order.
//
// Where the walk does not know, it says nothing: names that come from other files count by what is done with them (who has
// zero_grad and step is an optimizer), never by a guess alone.
package vetpy
