package schema

var encodingFileNames = map[Encoding]string{Auto: "auto", Plain: "plain", RLE: "rle", Bitshuffle: "bitshuffle",
	Dictionary: "dict", Prefix: "prefix"}

var compressionFileNames = map[Compression]string{DefaultCompression: "default", NoCompression: "none",
	Snappy: "snappy", LZ4: "lz4", Zlib: "zlib",
	LZ4HC: "lz4hc", Dense: "dense"}

// FileName returns the encoding as schema files spell it, or "" if e is not an Encoding.
func (e Encoding) FileName() string { return encodingFileNames[e] }

// FileName returns the compression as schema files spell it, or "" if c is not a Compression.
func (c Compression) FileName() string { return compressionFileNames[c] }
