// Conversions between element types: three modules per type converted from, to floating-point types, to integers and
// bool, and to the types that are only stored; one kernel per type converted to. convert.cuh and f8.cuh have the rules,
// layout.cuh the order of the elements.
//
//warpline:module cast_float_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -Df32_
//warpline:module cast_float_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -Df64_
//warpline:module cast_float_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -Df16_
//warpline:module cast_float_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -Dbf16_
//warpline:module cast_float_i64 -DELEMENT=i64 -DNAME(op)=op##_i64 -Di64_
//warpline:module cast_float_i32 -DELEMENT=i32 -DNAME(op)=op##_i32 -Di32_
//warpline:module cast_float_u8 -DELEMENT=u8 -DNAME(op)=op##_u8 -Du8_
//warpline:module cast_float_bool -DELEMENT=boolean -DNAME(op)=op##_bool -Dbool_
//warpline:module cast_integer_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -Df32_ -DINTEGERS
//warpline:module cast_integer_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -Df64_ -DINTEGERS
//warpline:module cast_integer_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -Df16_ -DINTEGERS
//warpline:module cast_integer_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -Dbf16_ -DINTEGERS
//warpline:module cast_integer_i64 -DELEMENT=i64 -DNAME(op)=op##_i64 -Di64_ -DINTEGERS
//warpline:module cast_integer_i32 -DELEMENT=i32 -DNAME(op)=op##_i32 -Di32_ -DINTEGERS
//warpline:module cast_integer_u8 -DELEMENT=u8 -DNAME(op)=op##_u8 -Du8_ -DINTEGERS
//warpline:module cast_integer_bool -DELEMENT=boolean -DNAME(op)=op##_bool -Dbool_ -DINTEGERS
//warpline:module cast_float_f8e4m3 -DELEMENT=f8e4m3 -DNAME(op)=op##_f8e4m3 -Df8e4m3_
//warpline:module cast_integer_f8e4m3 -DELEMENT=f8e4m3 -DNAME(op)=op##_f8e4m3 -Df8e4m3_ -DINTEGERS
//warpline:module cast_float_f8e5m2 -DELEMENT=f8e5m2 -DNAME(op)=op##_f8e5m2 -Df8e5m2_
//warpline:module cast_integer_f8e5m2 -DELEMENT=f8e5m2 -DNAME(op)=op##_f8e5m2 -Df8e5m2_ -DINTEGERS
//warpline:module cast_storage_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -Df32_ -DSTORAGE
//warpline:module cast_storage_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -Df64_ -DSTORAGE
//warpline:module cast_storage_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -Df16_ -DSTORAGE
//warpline:module cast_storage_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -Dbf16_ -DSTORAGE
//warpline:module cast_storage_i64 -DELEMENT=i64 -DNAME(op)=op##_i64 -Di64_ -DSTORAGE
//warpline:module cast_storage_i32 -DELEMENT=i32 -DNAME(op)=op##_i32 -Di32_ -DSTORAGE
//warpline:module cast_storage_u8 -DELEMENT=u8 -DNAME(op)=op##_u8 -Du8_ -DSTORAGE
//warpline:module cast_storage_bool -DELEMENT=boolean -DNAME(op)=op##_bool -Dbool_ -DSTORAGE
//warpline:module cast_storage_f8e4m3 -DELEMENT=f8e4m3 -DNAME(op)=op##_f8e4m3 -Df8e4m3_ -DSTORAGE
//warpline:module cast_storage_f8e5m2 -DELEMENT=f8e5m2 -DNAME(op)=op##_f8e5m2 -Df8e5m2_ -DSTORAGE
#include "layout.cuh"
#include "convert.cuh"
#include "f8.cuh"

typedef ELEMENT T;

template <class D> DEVICE void cast(D *out, const T *x, const Layout<1> &l) {
	const int size = sizeof(D) > sizeof(T) ? sizeof(D) : sizeof(T), W = size == 1 ? 8 : 16 / size;
	u32 i = globalThread(), threads = globalThreads();
	for (; i < l.chunks; i += threads) {
		Chunk<1> c = locate<W>(l, i);
		Vec<T, W> a = load<W>(x + c.at[0], l.step[0], c.n);
		Vec<D, W> r;
		for (int k = 0; k < W; k++)
			r.v[k] = convert<D>(a.v[k]);
		store<W>(out + c.out, 1, c.n, r);
	}
}

#define CAST(D, name) \
	KERNEL(256) NAME(cast_##name##_from)(D *out, const T *x, const Layout<1> l) { cast(out, x, l); }

#ifdef STORAGE
#ifndef f8e4m3_
CAST(f8e4m3, f8e4m3)
#endif
#ifndef f8e5m2_
CAST(f8e5m2, f8e5m2)
#endif
#elif !defined INTEGERS
#ifndef f32_
CAST(f32, f32)
#endif
#ifndef f64_
CAST(f64, f64)
#endif
#ifndef f16_
CAST(f16, f16)
#endif
#ifndef bf16_
CAST(bf16, bf16)
#endif
#else
#ifndef i64_
CAST(i64, i64)
#endif
#ifndef i32_
CAST(i32, i32)
#endif
#ifndef u8_
CAST(u8, u8)
#endif
#ifndef bool_
CAST(boolean, bool)
#endif
#endif
