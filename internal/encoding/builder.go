package encoding

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Default sizes of a builder. Source: cfile spec §11.5.
const (
	DefaultBlockBytes      = 256 << 10
	minBlockBytes          = 512
	DefaultRestartInterval = 16
)

// BuilderOptions configure a builder.
type BuilderOptions struct {
	Type            schema.Type
	Encoding        schema.Encoding // Auto is the default of Type
	BlockBytes      int             // approximate size of a payload, at least 512; 0 = 256 KiB
	StringBytes     int             // the same for payloads of byte strings that are not codes; 0 = BlockBytes
	RestartInterval int             // PREFIX: number of values between restarts; 0 = 16
	NoWords         bool            // DICT: make PLAIN payloads only
	Exact           bool            // Kudu's bytes; otherwise readers decode the chunks of BIT_SHUFFLE and DICT faster
}

// Builder builds payloads that contain the same values as Kudu's for the same batches, and with
// BuilderOptions.Exact are identical to Kudu's.
//
// Use: Append until it takes fewer cells than offered or Full returns true, then Finish and Reset.
// PLAIN of fixed width and RLE check the size only between calls of Append and may exceed it by a
// whole batch. The other encodings check it for each value. Source: cfile spec §11.3.
type Builder interface {
	// Append appends cells [from, to) of v, none of them NULL, until the payload is full. It
	// returns how many it appended: at least one unless Full was true before. It keeps no reference
	// to v.
	Append(v *batch.Vector, from, to int) int
	// AppendAll appends all of the cells even if the payload is full. It is for the elements of one
	// array, which must not be split. Source: cfile spec §11.3.
	AppendAll(v *batch.Vector, from, to int)
	Full() bool
	// Len returns the number of values since Reset.
	Len() int
	// First and Last return the first and the last value as cells, valid until Reset. Len must not
	// be 0.
	First() []byte
	Last() []byte
	// Finish appends the payload to dst; ord is the ordinal of the cblock's first row. The next
	// call must be Reset.
	Finish(dst []byte, ord batch.Ordinal) []byte
	// Reset empties the builder. It keeps the dictionary, which all payloads of a file share.
	Reset()
}

// DictionaryBuilder is a Builder of DICT payloads.
type DictionaryBuilder interface {
	Builder
	// FinishDictionary appends the payload of the dictionary cblock. A file has that cblock even if
	// the dictionary is empty.
	FinishDictionary(dst []byte) []byte
	// Words returns the number of words so far, and Word one of them, valid until the next call of
	// another method.
	Words() int
	Word(i int) []byte
	// Coded reports whether the payload consists of codes. It changes only in Reset.
	Coded() bool
	// AppendUsed appends the distinct words of a payload of codes, each once, to dst. They are
	// valid until the next call of another method.
	AppendUsed(dst [][]byte) [][]byte
	// Share reports whether payloads with the codes of d have the same values in this file: whether
	// both dictionaries begin with the same words. It adds those words of d that are missing, if all
	// of them fit.
	Share(d *batch.Dictionary) bool
}

// NewBuilder returns a builder, for DICT a DictionaryBuilder. It returns ErrUnsupported if the type
// does not allow the encoding.
func NewBuilder(o BuilderOptions) (Builder, error) {
	if !o.Type.Scalar() || !o.Encoding.Allowed(o.Type) {
		return nil, fault.Unsupportedf("encoding: %s does not fit %s", o.Encoding, o.Type)
	}
	if o.BlockBytes == 0 {
		o.BlockBytes = DefaultBlockBytes
	}
	o.BlockBytes = max(o.BlockBytes, minBlockBytes)
	if o.StringBytes == 0 {
		o.StringBytes = o.BlockBytes
	}
	o.StringBytes = max(o.StringBytes, minBlockBytes)
	if o.RestartInterval <= 0 {
		o.RestartInterval = DefaultRestartInterval
	}
	var b Builder
	switch o.Encoding.Resolve(o.Type) {
	case schema.RLE:
		b = &rleBuilder{typ: o.Type, blockBytes: o.BlockBytes}
	case schema.Bitshuffle:
		b = &shuffleBuilder{typ: o.Type, capacity: o.BlockBytes / o.Type.Width(), exact: o.Exact}
	case schema.Prefix:
		b = &prefixBuilder{blockBytes: o.StringBytes, interval: o.RestartInterval}
	case schema.Dictionary:
		b = newDictBuilder(&o)
	default:
		switch o.Type.Physical() {
		case schema.Bool:
			b = &plainBoolBuilder{blockBytes: o.BlockBytes}
		case schema.Binary:
			b = &binaryBuilder{blockBytes: o.StringBytes}
		default:
			b = &plainBuilder{width: o.Type.Width(), blockBytes: o.BlockBytes}
		}
	}
	b.Reset()
	return b, nil
}

// byteString returns cell i of a vector of byte strings, in either form.
func byteString(v *batch.Vector, i int) []byte {
	if v.Dict != nil {
		return v.Dict.Words[v.Codes[i]]
	}
	return v.Bytes[i]
}

// ends keeps copies of the first and the last byte string of a payload.
type ends struct{ first, last []byte }

func (e *ends) First() []byte { return e.first }
func (e *ends) Last() []byte  { return e.last }

// setBytes copies b into dst's memory. The result is not nil, which would be NULL.
func setBytes(dst, b []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, len(b)+16)
	}
	return append(dst[:0], b...)
}

// note is called after cells [from, to) of v were appended, with the number of values before them.
func (e *ends) note(before int, v *batch.Vector, from, to int) {
	if from == to {
		return
	}
	if before == 0 {
		e.first = setBytes(e.first, byteString(v, from))
	}
	e.last = setBytes(e.last, byteString(v, to-1))
}
