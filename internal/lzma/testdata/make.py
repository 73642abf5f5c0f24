"""Packs text.txt by liblzma, for lzma_test.go. It writes sizes as unknown and ends with a mark; here the size is in the header."""
import lzma
import struct

text = open("text.txt", "rb").read()
for lc in 0, 3, 4:
    for preset in 0, 9 | lzma.PRESET_EXTREME:
        filters = [{"id": lzma.FILTER_LZMA1, "preset": preset, "lc": lc, "lp": 0, "pb": 0}]
        packed = lzma.compress(text, format=lzma.FORMAT_ALONE, filters=filters)
        with open(f"lc{lc}_{preset & 15}.lzma", "wb") as f:
            f.write(packed[:5] + struct.pack("<Q", len(text)) + packed[13:])
