package redlock

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/internal/redisproc"
)

// startTLSServer starts a server that speaks TLS, with a certificate of an
// authority that only this test knows.
func startTLSServer(t testing.TB) *realServer {
	dir := t.TempDir()
	authority, authorityKey := certificate(t, dir, "ca", nil, nil)
	certificate(t, dir, "server", authority, authorityKey)
	port, ok := freePort(t, "127.0.0.1")
	if !ok {
		t.Fatal("no free port")
	}
	s := startServer(t, redisproc.Options{Args: []string{
		"--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", filepath.Join(dir, "server.crt"), "--tls-key-file", filepath.Join(dir, "server.key"),
		"--tls-ca-cert-file", filepath.Join(dir, "ca.crt"),
	}})
	known := x509.NewCertPool()
	known.AddCert(authority)
	s.options.Addr = net.JoinHostPort("127.0.0.1", port)
	s.options.TLSConfig = &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}
	return s
}

// certificate writes a key and a certificate for 127.0.0.1 into dir. Without a
// signer it is an authority's.
func certificate(t testing.TB, dir, name string, signer *x509.Certificate, signerKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if signer == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage |= x509.KeyUsageCertSign
		signer, signerKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestUnknownCertificateIsRefusedAndNamed(t *testing.T) {
	t.Parallel()
	s := startTLSServer(t)
	s.options.TLSConfig.RootCAs = x509.NewCertPool()
	_, err := onServers(t, []Node{s.node()}, patient()).TryAcquire(context.Background(), "k")
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an error that names the certificate", err)
	}
	s.options.TLSConfig = nil // speaks plainly to a port that wants TLS
	if l, err := onServers(t, []Node{s.node()}, patient()).TryAcquire(context.Background(), "k"); err == nil {
		t.Errorf("got the lease %v", l.Key())
	}
	l, err := Dial([]string{"rediss://" + s.options.Addr + "?skip_verify=true"}, patient())
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, l)
	cycle(t, l, "k")
}
