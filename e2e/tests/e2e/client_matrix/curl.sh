# A file as editors write it: bare LFs.
printf 'From: shop@example.com\nTo: ada@example.net\nSubject: curl upload\n\nHello from curl.\n' >"$DIR/curl.eml"
curl --silent --show-error --verbose --url "smtp://$HOST:$PORT/client.example" --user "default:$KEY" \
    --mail-from shop@example.com --mail-rcpt ada@example.net --upload-file "$DIR/curl.eml" 2>&1 | grep -v AUTH
test "${PIPESTATUS[0]}" = 0
