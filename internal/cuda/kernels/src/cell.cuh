// Launch parameters that may lie in device memory, so that a captured launch finds another value each time.
#pragma once
#include "convert.cuh"

// Word is a parameter of 64 bits: a value, or where cell is not null, what lies there.
template <class T> struct Word {
	T value;
	const T *cell;

	DEVICE operator T() const { return cell ? *cell : value; }
};

// Number is a parameter in the type C that it is computed in: a value, or where cell is not null, the number there.
template <class C> struct Number {
	C value;
	const f64 *cell;

	DEVICE operator C() const { return cell ? wide<C>(convert<C>(*cell)) : value; }
};
