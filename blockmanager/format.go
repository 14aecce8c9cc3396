package blockmanager

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/lsn"
)

// Format creates data/, meta/ and ANCHOR in a directory that has none of them, with a first commit
// of the given rows and log_start. On return everything is durable, including the names. If a
// Format was interrupted, the caller must remove what it left before calling Format again.
func Format(o Options, rows []Row, logStart lsn.LSN) error {
	if err := formatWith(o, rows, Counters{Epoch: 1, Mark: 1, LogStart: logStart}); err != nil {
		return fmt.Errorf("blockmanager: format: %w", err)
	}
	return nil
}

// formatWith is Format with all counters given.
func formatWith(o Options, rows []Row, c Counters) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if o.ReadOnly {
		return fault.ErrReadOnly
	}
	if o.BlockSize == 0 {
		o.BlockSize = defaultBlockSize
	}
	return format(&o, rows, c)
}

func format(o *Options, rows []Row, c Counters) error {
	for _, dir := range []string{o.dataDir(), o.metaDir()} {
		if err := o.FS.Mkdir(dir); err != nil {
			return err
		}
		if err := o.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	st := newState()
	st.format = formatRow{blockSize: o.BlockSize, instance: o.Instance}
	st.mark, st.logStart, st.epoch = c.Mark, c.LogStart, c.Epoch
	for _, r := range rows {
		st.caller.put(string(r.Key), r.Value)
	}
	var ops []metaOp
	put := func(key []byte) {
		v := append([]byte{}, st.value(key)...)
		st.hash.add(key, v)
		ops = append(ops, metaOp{key, v})
	}
	put([]byte{kindFormat})
	put([]byte{kindMark})
	put([]byte{kindLogStart})
	for _, r := range st.caller.withPrefix("") {
		put(userKey([]byte(r.key)))
	}
	ops = append(ops, metaOp{[]byte{kindRoot}, st.root.value()})

	meta, err := openMeta(o, metaFormat, newPoison())
	if err != nil {
		return err
	}
	if err := errors.Join(meta.commit(ops), meta.close()); err != nil {
		return err
	}
	if err := createAnchor(o, st.root); err != nil {
		return err
	}
	return o.FS.SyncDir(o.Dir)
}
