// SPDX-License-Identifier: Apache-2.0
// A KMS for the tests with Spark: master keys come from the configuration, as id:base64 with commas between. A key is
// wrapped as base64(nonce 12 || AES-GCM ciphertext || tag 16) with the master key's id as AAD.
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.KeyAccessDeniedException;
import org.apache.parquet.crypto.keytools.KmsClient;

public class SharedKeysKms implements KmsClient {
  private static final int NONCE = 12;
  private static final int TAG_BITS = 128;

  private final Map<String, byte[]> keys = new HashMap<>();
  private final SecureRandom random = new SecureRandom();

  @Override
  public void initialize(Configuration configuration, String instance, String url, String token) {
    for (String entry : configuration.getTrimmedStrings("shared.keys")) {
      String[] parts = entry.split(":");
      keys.put(parts[0], Base64.getDecoder().decode(parts[1]));
    }
  }

  @Override
  public String wrapKey(byte[] key, String master) {
    byte[] nonce = new byte[NONCE];
    random.nextBytes(nonce);
    byte[] sealed = run(Cipher.ENCRYPT_MODE, nonce, key, 0, master);
    byte[] wrapped = Arrays.copyOf(nonce, NONCE + sealed.length);
    System.arraycopy(sealed, 0, wrapped, NONCE, sealed.length);
    return Base64.getEncoder().encodeToString(wrapped);
  }

  @Override
  public byte[] unwrapKey(String wrapped, String master) {
    byte[] bytes = Base64.getDecoder().decode(wrapped);
    return run(Cipher.DECRYPT_MODE, Arrays.copyOf(bytes, NONCE), bytes, NONCE, master);
  }

  private byte[] run(int mode, byte[] nonce, byte[] text, int from, String master) {
    if (!keys.containsKey(master)) {
      throw new KeyAccessDeniedException("no master key " + master);
    }
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      SecretKeySpec key = new SecretKeySpec(keys.get(master), "AES");
      cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
      cipher.updateAAD(master.getBytes(StandardCharsets.UTF_8));
      return cipher.doFinal(text, from, text.length - from);
    } catch (GeneralSecurityException error) {
      throw new KeyAccessDeniedException("master key " + master + ": " + error);
    }
  }
}
