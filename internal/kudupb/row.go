package kudupb

import (
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
)

// maxRowBytes bounds a metadata row before it is unmarshaled: 300 columns with the longest defaults
// and comments fit.
const maxRowBytes = 64 << 20

// EncodeRow returns the bytes of a metadata row's message, the same for equal messages. It panics
// on strings that are not UTF-8 and on absent required fields, which the callers rule out.
func EncodeRow(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("kudupb: " + err.Error())
	}
	return b
}

// DecodeRow reads the value of a metadata row into m and drops fields that m does not have. what
// names the row in errors: ErrCorrupt.
func DecodeRow(what string, value []byte, m proto.Message) error {
	if len(value) > maxRowBytes {
		return fault.Corruptf("metadata: %s row of %d bytes", what, len(value))
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, m); err != nil {
		return fault.Corruptf("metadata: %s row: %v", what, err)
	}
	return nil
}
