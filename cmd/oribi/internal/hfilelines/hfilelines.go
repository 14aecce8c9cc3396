// Package hfilelines prints and reads the lines of the commands on HFiles: entries, keys to find,
// and answers, one JSON object per line.
//
//	entry, HBase's view   row family qualifier ts type [mvcc] [tags] value
//	entry, Hudi's view    key value
//	key to seek           row [family] [qualifier] [ts] [type]; key
//	key to probe          row [qualifier]; key
//
// A byte string is printed as itself if it is printable ASCII and does not begin with 0x, otherwise
// as 0x and lower-case hex. Input takes the same forms, and text in UTF-8.
package hfilelines

import (
	"encoding/hex"
	"strconv"

	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/internal/celltext"
)

// AppendBytes appends a byte string as a JSON string.
func AppendBytes(dst, b []byte) []byte {
	if isText(b) {
		return celltext.AppendQuoted(dst, b)
	}
	dst = append(dst, `"0x`...)
	dst = hex.AppendEncode(dst, b)
	return append(dst, '"')
}

// isText reports whether b is printed as itself.
func isText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return !isHex(b)
}

// isHex reports whether text is the hex of a byte string.
func isHex(text []byte) bool { return len(text) >= 2 && text[0] == '0' && text[1] == 'x' }

// ParseBytes parses a byte string as a user writes it, without the quotes of JSON.
func ParseBytes(text string) ([]byte, error) {
	if isHex([]byte(text)) {
		return celltext.FromHex([]byte{}, text)
	}
	return []byte(text), nil
}

// AppendKey appends the key of a cell as an object, with its sequence ID unless that is 0.
func AppendKey(dst []byte, k *hfile.Key, sequence int64) []byte {
	return append(appendKeyFields(dst, k, sequence), '}')
}

func appendKeyFields(dst []byte, k *hfile.Key, sequence int64) []byte {
	dst = AppendBytes(append(dst, `{"row":`...), k.Row)
	dst = AppendBytes(append(dst, `,"family":`...), k.Family)
	dst = AppendBytes(append(dst, `,"qualifier":`...), k.Qualifier)
	dst = strconv.AppendInt(append(dst, `,"ts":`...), k.Timestamp, 10)
	dst = append(append(append(dst, `,"type":"`...), typeName(k.Type)...), '"')
	if sequence != 0 {
		dst = strconv.AppendInt(append(dst, `,"mvcc":`...), sequence, 10)
	}
	return dst
}

// AppendCell appends an entry in HBase's view. It returns an error if the entry's tags are
// malformed.
func AppendCell(dst []byte, c *hfile.Cell) ([]byte, error) {
	dst = appendKeyFields(dst, &c.Key, c.Sequence)
	if len(c.Tags) > 0 {
		before := `,"tags":[{"type":`
		for tag, err := range hfile.Tags(c.Tags) {
			if err != nil {
				return dst, err
			}
			dst = strconv.AppendUint(append(dst, before...), uint64(tag.Type), 10)
			dst = append(AppendBytes(append(dst, `,"value":`...), tag.Value), '}')
			before = `,{"type":`
		}
		dst = append(dst, ']')
	}
	dst = AppendBytes(append(dst, `,"value":`...), c.Value)
	return append(dst, '}'), nil
}

// AppendKeyValue appends an entry in Hudi's view.
func AppendKeyValue(dst []byte, kv *hfile.KeyValue) []byte {
	dst = AppendBytes(append(dst, `{"key":`...), kv.Key)
	dst = AppendBytes(append(dst, `,"value":`...), kv.Value)
	return append(dst, '}')
}

// namedTypes are the types of cells that have a name. Others are printed as their number.
var namedTypes = []hfile.Type{hfile.Minimum, hfile.Put, hfile.Delete, hfile.DeleteFamilyVersion,
	hfile.DeleteColumn, hfile.DeleteFamily, hfile.Maximum}

func typeName(t hfile.Type) string {
	for _, named := range namedTypes {
		if t == named {
			return t.String()
		}
	}
	return strconv.Itoa(int(t))
}

// parseType parses what typeName returns.
func parseType(name string) (t hfile.Type, ok bool) {
	for _, named := range namedTypes {
		if name == named.String() {
			return named, true
		}
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return hfile.Type(n), err == nil
}
