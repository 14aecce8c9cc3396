package kudufs

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/vfs"
)

// NewID returns a random ID of a server, a directory, a container, or a tablet: 32 hex digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Format makes the directory of a new server, with dir as its only root and the log block manager,
// and opens it. The parent of dir must exist. If Format fails, it leaves what it has made. Errors:
// fs.ErrExist if dir exists; errors of the file system. Source: blockmanager spec §1.5.
func Format(fsys vfs.FS, dir string) (*Directory, error) {
	if err := fsys.Mkdir(dir); err != nil {
		return nil, err
	}
	for _, name := range []string{dataName, logsName, superblocksName, consensusName} {
		if err := fsys.Mkdir(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	server := &kudupb.InstanceMetadataPB{Uuid: []byte(NewID()),
		FormatStamp: proto.String("Formatted at " + time.Now().UTC().Format("2006-01-02 15:04:05") + " on " + host)}
	if err := Replace(fsys, filepath.Join(dir, instanceName), AppendContainer(nil, InstanceKind, server)); err != nil {
		return nil, err
	}
	id := []byte(NewID())
	data := &kudupb.DirInstanceMetadataPB{DirSet: &kudupb.DirSetPB{Uuid: id, AllUuids: [][]byte{id}},
		DirType:                  proto.String(logBlocks),
		FilesystemBlockSizeBytes: proto.Uint64(blockBytes(fsys, filepath.Join(dir, instanceName)))}
	if err := Replace(fsys, filepath.Join(dir, dataName, blockInstanceName),
		AppendContainer(nil, DataKind, data)); err != nil {
		return nil, err
	}
	if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	return Open(fsys, dir)
}

// defaultBlockBytes is the size of a file system's blocks where it is not known.
const defaultBlockBytes = 4096

// blockBytes returns the size of the blocks of the file system that has a file.
func blockBytes(fsys vfs.FS, name string) uint64 {
	info, err := fsys.Stat(name)
	if err != nil {
		return defaultBlockBytes
	}
	if n := systemBlockBytes(info); n > 0 {
		return n
	}
	return defaultBlockBytes
}
