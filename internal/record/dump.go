package record

import (
	"fmt"
	"io"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/dump"
)

// Dump prints the record of a write batch, field by field. Row images are printed as bytes: without
// their schema they cannot be decoded. It prints what it can and returns Decode's error for the
// rest.
func Dump(w io.Writer, payload []byte) error {
	d := dump.New(w)
	h, end, err := split(payload)
	if err != nil {
		return err
	}
	d.Section("write batch")
	d.Field(0, payload[:1], "version")
	flags := "flags"
	if h.Empty {
		flags = "flags: empty"
	}
	d.Field(1, payload[1:2], "%s", flags)
	d.Field(timestampOff, payload[timestampOff:recordCountOff], "timestamp %d", uint64(h.Timestamp))
	d.Field(recordCountOff, payload[recordCountOff:recordHeadLen], "operations")
	r := newReader(payload, end)
	at := func() int64 { return int64(r.size - len(r.rest)) }
	for len(r.rest) > 0 {
		from := at()
		table, version, n, err := r.run()
		if err != nil {
			return err
		}
		d.Section("table %d, schema version %d", table, version)
		d.Field(from, payload[from:at()], "%d operations", n)
		for range n {
			from := at()
			op, err := r.op()
			if err != nil {
				return err
			}
			d.Field(from, payload[from:at()], "%s", describe(op))
		}
		d.End()
	}
	if h.Epoch > 0 {
		d.Field(int64(end), payload[end:], "metadata epoch %d", h.Epoch)
	}
	if _, err := Decode(payload, func(Op) error { return nil }); err != nil {
		return err
	}
	return d.Err()
}

// describe says in a line what an operation does.
func describe(op Op) string {
	switch op.Kind {
	case change.Insert, change.Replace:
		return fmt.Sprintf("%s key %x, image of %d bytes", op.Kind, op.Key, len(op.Body))
	case change.Update:
		return fmt.Sprintf("key %x: %s", op.Key, change.List(op.Body))
	case change.DeleteRange:
		return fmt.Sprintf("%s from key %x, below key %x", op.Kind, op.Key, op.Body)
	}
	return fmt.Sprintf("%s key %x", op.Kind, op.Key)
}
