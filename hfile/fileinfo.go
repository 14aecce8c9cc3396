package hfile

import (
	"bytes"
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/oribi-db/oribi/internal/fault"
)

// Payload of the block FILEINF2: pairs of bytes, in any order. Source: hfile spec §8.
//
//	offset  width   field    meaning
//	0       4       magic    PBUF
//	4       varint  length   of the message, as in protobuf
//	…       length  message  FileInfoProto: field 1, repeated, is a pair; of a pair, field 1 is the
//	                         key and field 2 the value
//
// One pair, KEY_VALUE_VERSION and 1:
//
//	50 42 55 46  1b  0a 19  0a 11 "KEY_VALUE_VERSION"  12 04 00 00 00 01
const (
	infoMagic     = "PBUF" // file format: never change
	infoPairField = 1      // file format: never change
	pairKeyField  = 1      // file format: never change
	pairValField  = 2      // file format: never change
)

// InfoEntry is a key of file info with its value. Users, and HBase's store files, add keys without
// the prefix "hfile.". Numbers in values are big-endian.
type InfoEntry struct {
	Key, Value []byte
}

// parseFileInfo reads the payload of the file info block. The entries alias it.
func parseFileInfo(payload []byte) ([]InfoEntry, error) {
	if !bytes.HasPrefix(payload, []byte(infoMagic)) {
		return nil, fault.Unsupportedf("file info does not begin with %s: the form of HBase before 0.96", infoMagic)
	}
	message := payload[len(infoMagic):]
	length, n := protowire.ConsumeVarint(message)
	if n < 0 || length != uint64(len(message)-n) {
		return nil, fault.Corruptf("file info: message of %d bytes, %d are left", length,
			max(0, len(message)-max(n, 0)))
	}
	message = message[n:]
	var entries []InfoEntry
	for len(message) > 0 {
		field, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, fault.Corruptf("file info: field: %v", protowire.ParseError(n))
		}
		message = message[n:]
		if field != infoPairField {
			if n = protowire.ConsumeFieldValue(field, wire, message); n < 0 {
				return nil, fault.Corruptf("file info: field %d: %v", field, protowire.ParseError(n))
			}
			message = message[n:]
			continue
		}
		pair, n := protowire.ConsumeBytes(message)
		if wire != protowire.BytesType || n < 0 {
			return nil, fault.Corruptf("file info: entry %d is cut off", len(entries))
		}
		message = message[n:]
		e, err := parsePair(pair)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// parsePair reads the message of one entry.
func parsePair(message []byte) (e InfoEntry, err error) {
	for len(message) > 0 {
		field, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return e, fault.Corruptf("file info: entry: %v", protowire.ParseError(n))
		}
		message = message[n:]
		if field != pairKeyField && field != pairValField {
			if n = protowire.ConsumeFieldValue(field, wire, message); n < 0 {
				return e, fault.Corruptf("file info: entry: %v", protowire.ParseError(n))
			}
			message = message[n:]
			continue
		}
		b, n := protowire.ConsumeBytes(message)
		if wire != protowire.BytesType || n < 0 {
			return e, fault.Corruptf("file info: an entry is cut off")
		}
		message = message[n:]
		b = b[:len(b):len(b)]
		if field == pairKeyField {
			e.Key = b
		} else {
			e.Value = b
		}
	}
	if e.Key == nil || e.Value == nil {
		return e, fault.Corruptf("file info: an entry lacks its key or value")
	}
	return e, nil
}

// layout describes the bytes of cells. File info has it, since the blocks do not say it.
type layout struct {
	encoding Encoding
	tags     bool // cells have tags
	dict     bool // in the encodings of differences, tags go through a dictionary
	sequence sequenceForm
	short    bool // a key may end after the row: files of Hudi's first native writers
}

// sequenceForm is how cells end.
type sequenceForm uint8

const (
	noSequence      sequenceForm = iota
	vintSequence                 // a Hadoop integer
	zeroSequence                 // one zero byte: early native writers of Hudi
	unknownSequence              // file info does not say: either noSequence or zeroSequence
)

// layoutOf reads the entries of file info that change the bytes of cells.
func layoutOf(value func(key string) ([]byte, bool), hudi bool) (l layout, err error) {
	l.short = hudi
	if name, ok := value(infoIndexEncoding); ok && string(name) != EncodingNone.String() {
		return l, fault.Unsupportedf("index blocks with encoding %.100q", name)
	}
	if name, ok := value(infoDataEncoding); ok {
		i := slices.IndexFunc(encodings[:], func(e Encoding) bool { return string(name) == e.String() })
		if i < 0 {
			return l, fault.Unsupportedf("data blocks with encoding %.100q", name)
		}
		l.encoding = encodings[i]
	}
	_, l.tags = value(infoMaxTagsLen)
	if v, ok := value(infoTagsCompressed); ok && l.tags {
		l.dict = !bytes.Equal(v, []byte{0}) && l.encoding != EncodingNone && l.encoding != EncodingRowIndexV1
	}
	switch v, ok := value(infoKeyValueVersion); {
	case ok && len(v) == 4 && binary.BigEndian.Uint32(v) == 1:
		l.sequence = vintSequence
	case !ok && l.encoding == EncodingNone && !l.tags:
		l.sequence = unknownSequence
	}
	return l, nil
}

var encodings = [...]Encoding{EncodingNone, EncodingPrefix, EncodingDiff, EncodingFastDiff, EncodingRowIndexV1}
